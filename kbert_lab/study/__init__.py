"""What a graph can do for data: audits, the gate, a whole file read twice, their statistics."""
