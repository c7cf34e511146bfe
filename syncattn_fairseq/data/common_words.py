"""The most common words of several languages, for telling similar languages apart."""

COMMON_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "cs": "a se na v je že s z do to o i jako za by",
        "da": "og i at det er en til på af som med den for ikke de",
        "de": "der die und das in zu den von mit ist ein eine nicht auf dem",
        "en": "the of and to in is that a for it with on was are by",
        "es": "de la el que en y los se las del un por con una para",
        "et": "ja on ei et ta see kui ka mis oli või aga oma siis",
        "fi": "ja on ei se että oli hän mutta ovat joka kun niin myös kuin",
        "fr": "le la les et des est dans un une du pour que qui pas au",
        "hu": "a az és hogy nem is egy meg de ez volt van csak már",
        "it": "di che il la per un è non una sono con del della dei gli",
        "lt": "ir yra kad į su iš kaip tai buvo o bet ne už nuo",
        "lv": "un ir ka no ar uz par tas bija kas arī bet kā pēc",
        "nl": "de het een van en in is dat op te zijn met voor niet aan",
        "no": "og i det er en til på som av for med at ikke de har",
        "pl": "w i na z się do nie że to jest o jak po za od",
        "pt": "de que o a e do da em um para com não uma os no",
        "ro": "și de la în a cu pe nu un o este că din să pentru",
        "ru": "и в не на что я с он как это по но к из у",
        "sk": "a v sa na je že s z do to o aj ako za by",
        "sl": "je in v na da se so za ne bi pa z tudi ki",
        "sv": "och i att det som en på är av för med den till inte om",
        "tr": "ve bir bu da de için ile çok daha ne gibi o olarak en",
        "uk": "і в не на що я з він як це та до у за",
    }.items()
}
