"""What tests start as forks: the command line of localvertex, and programs that use exact_resume."""

from vertex_testing.forks import Forks

LOCALVERTEX = Forks("localvertex.commands.run", "localvertex.commands.server", "localvertex.show.terminal.lines")
TRAININGS = Forks("exact_resume.program", "exact_resume.loop", "exact_resume.wrapper.run", "exact_resume.rehearsal")
