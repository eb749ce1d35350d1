"""Running claimed jobs inside one worker process."""
