"""`prove`: whether a training that is disturbed ends as an undisturbed one; the files are in the order of the story.

subject (what is proved), faults (what goes wrong), watch and disturbance (how), trial (one run), log_numbers, outputs
and observation (what a run has left), comparison and causes (what that says), prove (all of it), report and command.
"""
