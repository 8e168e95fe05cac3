"""The environments that a policy plays while it learns. No file here loads torch, which workers do without.

pool           places of the environments: this process, worker processes, threads, or a Ray cluster
curriculum     what the groups of an iteration play
mixed_env      several environments as one
labelled       an environment that tells what an expert would do
"""
