"""Keys, words and files of other tools and versions: what each is here."""
