"""Properties hold however long an example takes: the machine may be busy."""

from hypothesis import settings

settings.register_profile("holdfast", settings.get_profile(settings.get_current_profile_name()), deadline=None)
settings.load_profile("holdfast")
