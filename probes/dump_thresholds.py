"""The numbers that text and dumps are judged by, with where each comes from; log-prob limits are in `thresholds`.

Limits for text were chosen on samples and keep a wide margin: of 2,900 pieces of healthy text (manual pages and
messages in 40 languages, code and data in 20 formats cut at any place, model output) none was called garbled, of 124
garbled samples of dumps all, and most samples of SmolLM2-135M with its weights permuted, swapped, shifted or zeroed.
`tests/data/dumps/texts.yaml` keeps a part of them.
"""

from __future__ import annotations

from probes.thresholds import Threshold

REF_CLOSE = Threshold(
    1e-5, "nat/token", "chosen: float32 sums in another order move logits near 20 by 2e-6; kernels in bf16 by 1e-3"
)
GARBLED_SHARE = 0.7
"""Share of the judged samples from which the whole rollout counts as garbled, and not only partly."""
PARTLY_SHARE = 0.05
"""Share of garbled samples that is not chance: at least 2 samples and more than 1 in 20."""
EMPTY_SHARE = 0.5
"""Share of empty responses from which the rollout counts as empty."""
SPLIT_BALANCE = 0.9
"""A group or position counts as fully garbled from this share, and as fine below one minus this."""
SPLIT_CHANCE = 1e-4
"""Probability under chance below which a pattern of garbled samples counts as a pattern."""

WINDOW = 700
"""Characters judged at a time."""
WINDOWS = 8
"""Windows judged in one response, spread evenly; a response of 8,000 tokens is about 32,000 characters."""
GARBLED_WINDOWS = 1 / 3
"""Share of garbled windows from which a response counts as garbled."""
LOOP_SHARE = 0.5
"""Share of a response that one endlessly repeated piece must fill."""
LOOP_CHARACTERS = 100
"""Least length of such a loop; a poem's refrain and a table are shorter or vary."""
LOOP_REPEATS = 4
"""Least number of repetitions of the piece."""
REPLACEMENT_SHARE = 0.05
"""Share of U+FFFD or control characters; a response cut inside an emoji has one to three."""
RARE_HAN_SHARE = 0.25
"""Share of Chinese characters outside the common levels of GB 2312, Big5 and JIS X 0208; prose has under 0.05."""
RARE_HANGUL_SHARE = 0.25
"""Share of Hangul syllables outside KS X 1001, which holds the 2,350 in use; random syllables give 0.79."""
PLAIN_SHARE = 0.85
"""Share of letters among what is not blank: below it a text is code, data or formulas and its words prove nothing."""
SALAD_WORDS = 20
SALAD_DISTINCT = 0.93
"""Share of different words; prose of 100 words repeats a third of them."""
SALAD_FUNCTION_WORDS = 0.12
"""Share of English function words; prose has 0.3 to 0.5, tokens drawn at random under 0.1."""
SALAD_MARKS = 0.3
"""Punctuation marks and line ends for each word."""
SALAD_DIGITS = 0.05
"""Digits for each letter; base64 and hashes have more."""
SALAD_CONFIDENCE = 0.9
"""Confidence of lid.176 in the language; prose 0.96-1.0, salad 0.11-0.85."""
SALAD_UPPER = (0.05, 0.85)
"""Share of capitalised words; lists of words or of names are outside."""
SALAD_GLUED = 0.04
LONG_WORD = 15
"""Letters of a word that is more likely two tokens; half the share SALAD_GLUED of joints aB counts as much."""
FRAGMENT_JOINTS = 0.12
FRAGMENT_MARKS = 0.1
FRAGMENT_CONFIDENCE = 0.6
"""The same for a few tokens that come again and again, so that the words are not different."""
PIECES_SHARE = 0.25
"""Share of a text in pieces such as <filename><filename> that follow themselves at least three times."""
DRAWN_AT_RANDOM = -3.5
"""Mean log-prob of its own tokens, in nats, below which a sampler was nearly blind: SmolLM2-135M at temperature 1
gives -1.3 on average and -2.5 at worst, larger models -0.1 to -0.6; permuted heads or a temperature of 3 -4 to -10."""
ODD_CONFIDENCE = 0.9
"""Confidence of lid.176 in the language of a text that the same sampler drew."""
LOOSE_SHARE = 0.05
LOOSE_EMPTY = 0.6
"""Share of commas and full stops between blanks, and of function words and single letters among the words there."""
FOREIGN_CONFIDENCE = 0.5
"""Confidence from which another language than English is believed and its words are not counted."""
STUTTER_DISTINCT = 0.45
STUTTER_SHARE = 0.1
"""Share of words that repeat the word before them."""
STUTTER_MARKS = 0.2
"""Punctuation marks for each word; the refrain of a song has more."""
FUNCTION_WORDS_ONLY = 0.72
"""Share of function words no sentence reaches; prose stays below 0.6."""
