"""How well a policy plays.

evaluate       a saved policy on the first tasks of a split, with records that anybody can replay
held_out       the policy of a run, between its iterations
"""
