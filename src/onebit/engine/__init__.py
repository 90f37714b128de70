"""How rounds are compiled and played: the loop, the state, randomness, the compiler and its cache."""
