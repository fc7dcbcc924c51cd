"""The languages that models read, as cards and folder names say them."""

CHINESE, ENGLISH, LATIN, SEVERAL = "Chinese", "English", "Latin script", "several scripts"
BY_NAME = {"zh": CHINESE, "en": ENGLISH}
