"""The jobs: functions from DataFrames to DataFrames, each in a module of its own with its report."""
