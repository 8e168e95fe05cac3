"""The language model that acts.

models         load a policy, or make a tiny one
chat           a conversation as token ids
microbatches   which rows go through a model together
"""
