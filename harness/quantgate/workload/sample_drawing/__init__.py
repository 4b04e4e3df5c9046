"""Draws the authored replay samples: `python -m quantgate.workload.sample_drawing replay_samples`.

The texts are written by hand (replay_samples/texts); what is drawn, seeded, is which of them meet, when they arrive and
how long their answers are. The same seed writes the same bytes on every machine.
"""
