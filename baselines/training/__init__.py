"""From episodes to updates.

trainer        the loop of all methods of reinforcement learning: collect, update, log, checkpoint
capabilities   what a method needs of an environment
update         one iteration's updates
scoring        log-probabilities of episodes
openings       prompts that rows share, read once
critic         the model that estimates values
checkpoint     what a run needs to resume
signals        Ctrl-C and SIGTERM, which wait for the end of an update
labels         conversations that teach what an expert would have done
allocator      memory that the trainer keeps
"""
