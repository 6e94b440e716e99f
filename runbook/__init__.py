"""The engine: walks decision trees over evidence. It knows nothing of the programs it diagnoses.

`import runbook` must stay free: the command's start-up budget is spent here first.
"""

__version__ = "0.1.0"
