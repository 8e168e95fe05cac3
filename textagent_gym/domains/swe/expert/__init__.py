"""An expert that knows what any agent knows, and the programs that it sends to the sandbox."""
