"""Selections by boolean masks, whose lengths only data tell."""
