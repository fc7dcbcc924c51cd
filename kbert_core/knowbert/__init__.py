"""KnowBert (Peters et al., EMNLP 2019): entity vectors, chosen by a linker, between two layers."""
