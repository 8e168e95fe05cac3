"""What a method is made of: pure functions, each with its paper's equation. Only `losses` loads torch.

rollouts       episodes as arrays
advantages     credit of each step
losses         loss of each token
method         an advantage and a loss, and what they need
"""
