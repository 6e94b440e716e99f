"""Limits by which one response is called garbage.

All were chosen on samples and keep a wide margin: of 2,900 pieces of healthy text (manual pages and messages in 40
languages, code and data in 20 formats cut at any place, model output) none was called garbled, of 124 garbled samples
of dumps all, and most samples of SmolLM2-135M with its weights permuted, swapped, shifted or zeroed.
`tests/data/dumps/texts.yaml` keeps a part of them. How many garbled samples prove a fault is decided in `samples`.
"""

from __future__ import annotations

from probes.thresholds import Threshold

SHORT = Threshold(24, "characters", "chosen: below it a response is an answer of a word or two and is not judged")
WINDOW = Threshold(700, "characters", "chosen: judged at a time; a paragraph, in which shares mean something")
WINDOW_ALONE = Threshold(1.5, "windows", "chosen: a text up to this long is judged in one piece")
WINDOWS = Threshold(
    8, "windows", "chosen: spread evenly over one response; 8,000 tokens are about 32,000 characters, and time is short"
)
GARBLED_WINDOWS = Threshold(1 / 3, "of the windows", "chosen: garbled ones from which the response counts as garbled")

LOOP_SHARE = Threshold(0.5, "of the response", "chosen: what one endlessly repeated piece must fill")
LOOP_CHARACTERS = Threshold(100, "characters", "chosen: a poem's refrain and a table are shorter or vary")
LOOP_REPEATS = Threshold(4, "repetitions", "chosen: three of the same line occur in lists and songs")
LOOP_TAIL = Threshold(48, "characters", "chosen: the end of a text whose earlier occurrence gives the period of a loop")
LOOP_LETTERS = Threshold(2, "characters", "chosen: a period so short (!!!!) is a loop in a shorter text as well")

BROKEN_SHARE = Threshold(
    0.05, "of the characters", "chosen: U+FFFD or controls; a response cut inside an emoji has one to three"
)
BROKEN_COUNT = Threshold(5, "characters", "chosen: a response cut inside an emoji has one to three")

SCRIPTS = Threshold(3, "scripts", "chosen: joined inside words; a language and a loanword make two")
JOINTS_MANY = Threshold(3, "kinds of joints", "chosen: pairs of scripts that meet inside words; no language has three")
JOINTS_MANY_COUNT = Threshold(4, "joints", "chosen: fewer are single typing errors")
JOINTS_MANY_SHARE = Threshold(0.03, "joints for each letter", "chosen: a few foreign words in a long text are no salad")
JOINTS_DENSE = Threshold(
    2, "kinds of joints", "chosen: as Chinese text about Arabic letters has; needs the next two too"
)
JOINTS_DENSE_COUNT = Threshold(5, "joints", "chosen: one more than where three kinds meet")
JOINTS_DENSE_SHARE = Threshold(
    0.08, "joints for each letter", "chosen: higher, because two kinds of joints occur in healthy text"
)

RARE_COUNT = Threshold(20, "characters", "chosen: fewer Chinese or Korean characters give no share worth the name")
RARE_HAN_SHARE = Threshold(
    0.25,
    "of the Chinese characters",
    "chosen: outside the common levels of GB 2312, Big5 and JIS X 0208; prose has under 0.05",
)
RARE_HANGUL_SHARE = Threshold(
    0.25,
    "of the Hangul syllables",
    "chosen: outside KS X 1001, which holds the 2,350 in use; random syllables give 0.79",
)
HAN_SALAD_COUNT = Threshold(100, "characters", "chosen: shorter Chinese may be a list of names")
HAN_SALAD_SHARE = Threshold(0.7, "of the text", "chosen: below it other writing gives the text its order")
HAN_GLUE = Threshold(
    0.03, "of the Chinese characters", "chosen: words such as 的 and 是, which hold Chinese sentences together"
)
HAN_MARKS = Threshold(
    0.02, "marks for each character", "chosen: text without words that join needs marks to be sentences"
)

SYMBOLS_COUNT = Threshold(60, "characters", "chosen: a formula or an expression is shorter")
SYMBOLS_SHARE = Threshold(
    0.45, "of what is not blank", "chosen: code and LaTeX have names and numbers between their symbols"
)
SYMBOLS_KINDS = Threshold(15, "different symbols", "chosen: a drawing or a ruler uses a few")
BRACKETS_COUNT = Threshold(16, "brackets", "chosen: fewer may be a piece of code that was cut")
BRACKETS_MATCHED = Threshold(0.6, "of the brackets", "chosen: code that was cut still closes most")

LOOSE_COUNT = Threshold(8, "marks", "chosen: commas and full stops between blanks; fewer are typing habits")
LOOSE_SHARE = Threshold(
    0.05, "marks for each character", "chosen: code that begins lines with commas has names between them"
)
LOOSE_WORDS = Threshold(3, "words", "chosen: with fewer there is nothing to be empty")
LOOSE_EMPTY = Threshold(0.6, "of the words", "chosen: function words and single letters; code has names there")

PIECES_SHARE = Threshold(
    0.25, "of the text", "chosen: in pieces such as <filename><filename> that follow themselves at least three times"
)

PLAIN_SHARE = Threshold(
    0.85, "of what is not blank", "chosen: letters; below it a text is code, data or formulas and words prove nothing"
)
STUTTER_START = Threshold(60, "words", "chosen: the beginning in which different words are counted")
STUTTER_WORDS = Threshold(30, "words", "chosen: fewer may be a refrain")
STUTTER_DISTINCT = Threshold(0.45, "of the words", "chosen: different ones; a stutter uses a handful of words")
STUTTER_SHARE = Threshold(0.1, "of the words", "chosen: those that repeat the word before them")
STUTTER_MARKS = Threshold(0.2, "marks for each word", "chosen: the refrain of a song has more")
FUNCTION_WORDS_ONLY = Threshold(0.72, "of the words", "chosen: function words; prose stays below 0.6")

SALAD_WORDS = Threshold(20, "words", "chosen: fewer may be a title, a list or a line of code")
SALAD_DISTINCT = Threshold(0.93, "of the words", "chosen: different ones; prose of 100 words repeats a third of them")
SALAD_FUNCTION_WORDS = Threshold(
    0.12, "of the words", "chosen: English function words; prose has 0.3 to 0.5, tokens drawn at random under 0.1"
)
SALAD_MARKS = Threshold(0.3, "marks for each word", "chosen: punctuation and line ends; lists and verses have more")
SALAD_DIGITS = Threshold(0.05, "digits for each letter", "chosen: base64 and hashes have more")
SALAD_CONFIDENCE = Threshold(0.9, "confidence of lid.176", "chosen: prose 0.96 to 1.0, salad 0.11 to 0.85")
SALAD_UPPER_LEAST = Threshold(0.05, "of the words", "chosen: capitalised; word lists have fewer")
SALAD_UPPER_MOST = Threshold(0.85, "of the words", "chosen: capitalised; lists of names have more")
SALAD_LONG = Threshold(0.04, "of the words", "chosen: those of LONG_WORD letters and more")
SALAD_JOINTS = Threshold(0.02, "of the words", "chosen: glued as aB is; half of SALAD_LONG, for it is the surer sign")
LONG_WORD = Threshold(15, "letters", "chosen: such a word is more likely two tokens")
FRAGMENT_JOINTS = Threshold(
    0.12, "of the words", "chosen: glued as aB is, where the same few tokens come again and again"
)
FRAGMENT_MARKS = Threshold(0.1, "marks for each word", "chosen: names of a program come with marks")
FRAGMENT_CONFIDENCE = Threshold(0.6, "confidence of lid.176", "chosen: as SALAD_CONFIDENCE, for words that repeat")
FOREIGN_CONFIDENCE = Threshold(
    0.5, "confidence of lid.176", "chosen: from here another language than English is believed and not counted"
)

DRAWN_AT_RANDOM = Threshold(
    -3.5,
    "nat/token",
    "chosen: SmolLM2-135M at temperature 1 gives -1.3 on average and -2.5 at worst, larger models -0.1 to -0.6; "
    "permuted heads or a temperature of 3 give -4 to -10",
)
"""Mean log-prob of its own tokens below which a sampler was nearly blind."""
ODD_CONFIDENCE = Threshold(
    0.9, "confidence of lid.176", "chosen: language of a text that the same sampler drew; prose 0.96 to 1.0"
)
ODD_TAIL = Threshold(2000, "characters", "chosen: the end of the text, of which the language is asked")
