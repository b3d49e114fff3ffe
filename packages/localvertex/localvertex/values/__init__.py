"""Values inside a task: placeholders, arguments and conditions; types are in `localvertex._base.userinput`."""
