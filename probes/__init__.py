"""What slime, Megatron, SGLang, Ray and CUDA print and write, as probes and readers.

The engine collects every Probe, Slot and Follower that stands at module level in this package.
"""
