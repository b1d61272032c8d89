"""The papers, one folder each; every module in it that has no underscore is an experiment."""
