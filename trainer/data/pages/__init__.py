"""What the HTML pages of all steps are made of: blocks of text, tables and images, and charts."""
