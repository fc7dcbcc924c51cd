"""The languages that models read, as cards and folder names say them."""

from app.texts import N_

CHINESE, ENGLISH = N_("Chinese"), N_("English")
LATIN, SEVERAL = N_("Latin script"), N_("several scripts")
BY_NAME = SPOKEN = {"zh": CHINESE, "en": ENGLISH}
