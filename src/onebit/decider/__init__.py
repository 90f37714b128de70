"""A learner inside an application: records, a log that is the truth, and the decider that answers from it."""
