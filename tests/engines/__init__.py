"""Trainers and engines that are large to install, and the example, which takes many processes: `make
check-engines` brings them and runs these tests, ./check does not. setup/clients has an environment
for each.
"""
