"""Records what SGLang's load_weights is given, from inside the engine's process.

Invariants: standard library and torch only; what load_weights receives and returns is unchanged, a generator stays a
generator; an error of the recorder is written to its own log and ends the recording, never the load; what is written
is bounded and only ever appended to.

Layout of the output folder:

    recorder.log                       what the recorder has to say about itself
    engine-000/process.json            one folder a process: rank, versions, options
    engine-000/Qwen3ForCausalLM/update-0000/     one folder an update, update-0000 is the initial load
        received.jsonl                 every call and every tensor, in order
        engine.jsonl                   the engine's own parameters after each call
        tensors-000.safetensors        on request, the tensors themselves
"""

FORMAT = 1
"""Version of the layout and of the fingerprint."""
