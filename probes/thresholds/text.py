"""Limits by which one response is called garbage.

All were chosen on samples and keep a wide margin: 5,800 pieces of healthy text (the declaration of human rights in 500
languages, manual pages and messages in 100, answers of 24 models, code and data in 50 formats cut at any place, tool
calls, reasoning, songs) and 4,000 garbled ones (tokens of three vocabularies drawn at random, shuffled, looping,
stuttering, breaking off at any place, real samples of SmolLM2-135M with its weights permuted, shifted or zeroed).
`tests/data/dumps/texts.yaml` and `tests/data/texts` keep a part of them. How many garbled samples prove a fault is
decided in `samples`.
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

TAIL_LONG = Threshold(350, "characters", "chosen: half a window, to see where a long response breaks")
TAIL_SHORT = Threshold(200, "characters", "chosen: some thirty words, the least that can be called salad")
TAIL_PIECES = Threshold(2, "pieces", "chosen: garbled ones at the end; a key, a formula or a strange line fills one")
TAIL_MOST = Threshold(
    32, "pieces", "chosen: looked at from the end back; a break further back fills a third of windows"
)
START_TOLD = Threshold(40, "characters", "chosen: what begins later than this has a coherent beginning worth telling")

LOOP_SHARE = Threshold(0.5, "of the response", "chosen: what one endlessly repeated piece must fill")
LOOP_LONG = Threshold(2000, "characters", "chosen: a loop as long as this counts whatever came before it")
LOOP_LONG_REPEATS = Threshold(20, "repetitions", "chosen: of a loop that counts by its length; no refrain has so many")
LOOP_CHARACTERS = Threshold(100, "characters", "chosen: a poem's refrain and a table are shorter or vary")
LOOP_REPEATS = Threshold(4, "repetitions", "chosen: three of the same line occur in lists and songs")
LOOP_TAIL = Threshold(48, "characters", "chosen: the end of a text whose earlier occurrence gives the period of a loop")
LOOP_LETTERS = Threshold(2, "characters", "chosen: a period so short (!!!!) is a loop in a shorter text as well")
LOOP_LINES = Threshold(3, "lines", "chosen: a piece of as many is a stanza or the rows of a table")
LOOP_VERSES = Threshold(
    10, "repetitions", "chosen: of a stanza that ends where a line ends; more is a loop all the same"
)
LOOP_DIGITS = Threshold(300, "characters", "chosen: a googol has 101 digits, a period of 1/97 has 96")
LOOP_GRID = Threshold(2000, "characters", "chosen: a grid of 30 by 30 cells, the largest of ARC, is 1,800")

BROKEN_SHARE = Threshold(
    0.05, "of the characters", "chosen: U+FFFD or controls; a response cut inside an emoji has one to three"
)
BROKEN_COUNT = Threshold(5, "characters", "chosen: a response cut inside an emoji has one to three")

SCRIPTS = Threshold(3, "scripts", "chosen: joined inside words; a language and a loanword make two")
JOINTS_MANY = Threshold(3, "kinds of joints", "chosen: pairs of scripts that meet inside words; no language has three")
JOINTS_MANY_COUNT = Threshold(4, "joints", "chosen: fewer are single typing errors")
JOINTS_MANY_SHARE = Threshold(
    0.008, "joints for each letter", "chosen: 4 in a window; three kinds of joints occur in no healthy text at all"
)
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

STRAY_SCRIPTS = Threshold(
    3, "scripts", "chosen: of words that stand bare between Latin words; none of 5,800 healthy texts has two"
)

NOISE_COUNT = Threshold(100, "characters", "chosen: a password or a key is shorter")
NOISE_KINDS = Threshold(94, "characters", "chosen: all printable characters of ASCII but the blank")
NOISE_SHARE = Threshold(0.9, "of those that chance would show", "chosen: base64 and minified programs stay below 0.7")
NOISE_MOST = Threshold(
    0.06, "of the text", "chosen: the most frequent character; programs and formulas have 0.08 and more"
)

BASE64_COUNT = Threshold(100, "characters", "chosen: a key or a short message is less")
BASE64_LINE = Threshold(
    40, "characters", "chosen: of each line but the last; base64 comes in lines of 60 to 76 or in one"
)
BASE64_READABLE = Threshold(0.85, "of the decoded bytes", "chosen: text has all, noise 0.38")
BASE64_MOST = Threshold(0.08, "of the characters", "chosen: the most frequent one; DNA and encoded pictures have more")

LOOSE_COUNT = Threshold(8, "marks", "chosen: commas and full stops between blanks; fewer are typing habits")
LOOSE_SHARE = Threshold(
    0.05, "marks for each character", "chosen: code that begins lines with commas has names between them"
)
LOOSE_WORDS = Threshold(3, "words", "chosen: with fewer there is nothing to be empty")
LOOSE_EMPTY = Threshold(0.6, "of the words", "chosen: function words and single letters; code has names there")

PIECES_SHARE = Threshold(
    0.25, "of the text", "chosen: in pieces such as <filename><filename> that follow themselves at least three times"
)

ORDER_COUNT = Threshold(
    3, "pairs", "chosen: function words beside words that cannot follow them; 1 of 15,000 healthy windows has as many"
)
ORDER_ENGLISH = Threshold(2, "different words", "chosen: that no other language writes; Adangme has 'a he' and 'a be'")
ORDER_SHARE = Threshold(0.25, "of the pairs", "chosen: shuffled English has 0.4 to 0.6, healthy text under 0.1")
ORDER_KINDS = Threshold(2, "different pairs", "chosen: one pair again and again is a term, such as 'the if'")

DRAWN_WORDS = Threshold(30, "words", "chosen: of two letters or more; fewer may all be different in a sentence")
DRAWN_DISTINCT = Threshold(0.95, "of the words", "chosen: different ones; programs and prose stay below 0.9")
DRAWN_JOINTS = Threshold(0.04, "of the words", "chosen: glued as aB is; words in lists have none")
DRAWN_JOINTS_MOST = Threshold(0.5, "of the words", "chosen: from here on they are names of a program")
DRAWN_BLANKS = Threshold(0.25, "of the words", "chosen: with one blank to the next; base64 and programs have fewer")
DRAWN_FUNCTION_WORDS = Threshold(0.2, "of the words", "chosen: English function words; prose has 0.3 to 0.5")

PLAIN_SHARE = Threshold(
    0.85, "of what is not blank", "chosen: letters; below it a text is code, data or formulas and words prove nothing"
)
STUTTER_START = Threshold(60, "words", "chosen: the beginning in which different words are counted")
STUTTER_WORDS = Threshold(30, "words", "chosen: fewer may be a refrain")
STUTTER_DISTINCT = Threshold(0.45, "of the words", "chosen: different ones; a stutter uses a handful of words")
STUTTER_SHARE = Threshold(0.1, "of the words", "chosen: those that repeat the word before them")
STUTTER_MARKS = Threshold(0.2, "marks for each word", "chosen: the refrain of a song has more")
FUNCTION_WORDS_ONLY = Threshold(0.72, "of the words", "chosen: function words; prose stays below 0.6")
FUNCTION_LINES = Threshold(0.1, "line ends for each word", "chosen: phrases in a list, one a line, may have no noun")

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
SALAD_JOINTS = Threshold(
    0.02,
    "of the words",
    "chosen: glued as aB is; without it long words may be those of a language that lid.176 does not know",
)
LONG_WORD = Threshold(15, "letters", "chosen: such a word is more likely two tokens")
FRAGMENT_JOINTS = Threshold(
    0.12, "of the words", "chosen: glued as aB is, where the same few tokens come again and again"
)
FRAGMENT_MARKS = Threshold(0.1, "marks for each word", "chosen: names of a program come with marks")
FRAGMENT_CONFIDENCE = Threshold(0.6, "confidence of lid.176", "chosen: as SALAD_CONFIDENCE, for words that repeat")
FOREIGN_CONFIDENCE = Threshold(
    0.5, "confidence of lid.176", "chosen: from here another language than English is believed and not counted"
)

IDS_WINDOW = Threshold(128, "tokens", "chosen: looked at together; in half as many a sentence may repeat none")
IDS_DISTINCT = Threshold(
    0.95,
    "of the tokens",
    "measured: of 22,387 windows of healthy text in 400 languages and 50 formats none has over 0.91",
)
IDS_WORDS = Threshold(30, "words or characters", "chosen: with fewer the text cannot show that it repeats none")
IDS_TEXT_WORDS = Threshold(
    0.85, "of the words", "chosen: different ones, from which a text agrees with ids that differ"
)
IDS_TEXT_CHARACTERS = Threshold(0.5, "of the characters", "chosen: the same for writing without blanks")

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
