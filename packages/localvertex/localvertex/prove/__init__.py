"""`prove`: whether a training that is disturbed ends as an undisturbed one; the files are in the order of the story.

subject (what is proved), faults (what goes wrong), watch and disturbance (how), trial (one run), numbers and outputs
(what a run has left), comparison, progress and causes (what that says), prove (all of it), report, reproducer and
command (what users see).
"""
