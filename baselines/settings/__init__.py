"""What a run is asked for, and the folder that it writes. No file here loads torch.

config         settings of the episodes, of every trainer and of the policy's loss
dialogue       how a policy converses: format of its answers, memory
mixture        environments with weights
schedule       when a curriculum reaches its next level
recipe         settings in a YAML file
run_folder     settings and metrics of a run
"""
