"""The parts of the HTML pages of all steps: blocks of text, tables and images, and charts."""
