"""Languages by ISO 639 code and English name, and recognition of languages in file names."""

import re
from pathlib import PurePath

#: Codes of two letters (ISO 639-1), or ``-``; of three (639-3, and others of 639-2); names.
_TABLE = """
aa aar Afar
ab abk Abkhazian Abkhaz
ae ave Avestan
af afr Afrikaans
ak aka,twi,fat Akan Twi
am amh Amharic
an arg Aragonese
ar ara,arb Arabic
as asm Assamese
av ava Avaric Avar
ay aym,ayr Aymara
az aze,azj Azerbaijani Azeri
ba bak Bashkir
be bel Belarusian Belarussian
bg bul Bulgarian
bi bis Bislama
bm bam Bambara
bn ben Bengali Bangla
bo bod,tib Tibetan
br bre Breton
bs bos Bosnian
ca cat Catalan Valencian
ce che Chechen
ch cha Chamorro
co cos Corsican
cr cre Cree
cs ces,cze Czech
cu chu Old_Church_Slavonic
cv chv Chuvash
cy cym,wel Welsh
da dan Danish
de deu,ger German
dv div Divehi Dhivehi Maldivian
dz dzo Dzongkha
ee ewe Ewe
el ell,gre Greek
en eng English
eo epo Esperanto
es spa Spanish Castilian
et est,ekk Estonian
eu eus,baq Basque
fa fas,per,pes Persian Farsi
ff ful,fuv Fulah Fula
fi fin Finnish
fj fij Fijian
fo fao Faroese
fr fra,fre French
fy fry Western_Frisian Frisian
ga gle Irish
gd gla Scottish_Gaelic Gaelic
gl glg Galician
gn grn,gug Guarani
gu guj Gujarati
gv glv Manx
ha hau Hausa
he heb Hebrew
hi hin Hindi
ho hmo Hiri_Motu
hr hrv Croatian
ht hat Haitian Haitian_Creole
hu hun Hungarian
hy hye,arm Armenian
hz her Herero
ia ina Interlingua
id ind Indonesian
ie ile Interlingue Occidental
ig ibo Igbo
ii iii Sichuan_Yi Nuosu
ik ipk Inupiaq
io ido Ido
is isl,ice Icelandic
it ita Italian
iu iku Inuktitut
ja jpn Japanese
jv jav Javanese
ka kat,geo Georgian
kg kon Kongo
ki kik Kikuyu
kj kua Kuanyama
kk kaz Kazakh
kl kal Greenlandic Kalaallisut
km khm Khmer Cambodian
kn kan Kannada
ko kor Korean
kr kau Kanuri
ks kas Kashmiri
ku kur,kmr,ckb Kurdish Kurmanji Sorani
kv kom Komi
kw cor Cornish
ky kir Kyrgyz Kirghiz
la lat Latin
lb ltz Luxembourgish
lg lug Ganda Luganda
li lim Limburgish Limburgan
ln lin Lingala
lo lao Lao
lt lit Lithuanian
lu lub Luba-Katanga
lv lav,lvs Latvian
mg mlg,plt Malagasy
mh mah Marshallese
mi mri,mao Maori
mk mkd,mac Macedonian
ml mal Malayalam
mn mon,khk Mongolian
mr mar Marathi
ms msa,may,zsm Malay
mt mlt Maltese
my mya,bur Burmese Myanmar
na nau Nauru
nb nob Norwegian_Bokmål Bokmål Bokmal
nd nde North_Ndebele
ne nep,npi Nepali
ng ndo Ndonga
nl nld,dut Dutch Flemish
nn nno Norwegian_Nynorsk Nynorsk
no nor Norwegian
nr nbl South_Ndebele
nv nav Navajo
ny nya Chichewa Nyanja Chewa
oc oci Occitan
oj oji Ojibwa Ojibwe
om orm,gaz Oromo
or ori,ory Oriya Odia
os oss Ossetian Ossetic
pa pan Punjabi Panjabi
pi pli Pali
pl pol Polish
ps pus,pbt Pashto
pt por Portuguese
qu que,quy Quechua
rm roh Romansh
rn run Rundi Kirundi
ro ron,rum Romanian Moldavian
ru rus Russian
rw kin Kinyarwanda
sa san Sanskrit
sc srd Sardinian
sd snd Sindhi
se sme Northern_Sami Northern_Saami
sg sag Sango
si sin Sinhala Sinhalese
sk slk,slo Slovak
sl slv Slovenian Slovene
sm smo Samoan
sn sna Shona
so som Somali
sq sqi,alb,als Albanian
sr srp Serbian
ss ssw Swati Swazi
st sot Southern_Sotho Sesotho
su sun Sundanese
sv swe Swedish
sw swa,swh Swahili
ta tam Tamil
te tel Telugu
tg tgk Tajik
th tha Thai
ti tir Tigrinya
tk tuk Turkmen
tl tgl,fil Tagalog Filipino
tn tsn Tswana Setswana
to ton Tonga Tongan
tr tur Turkish
ts tso Tsonga
tt tat Tatar
ty tah Tahitian
ug uig Uyghur Uighur
uk ukr Ukrainian
ur urd Urdu
uz uzb,uzn Uzbek
ve ven Venda
vi vie Vietnamese
vo vol Volapük
wa wln Walloon
wo wol Wolof
xh xho Xhosa
yi yid,ydd Yiddish
yo yor Yoruba
za zha Zhuang
zh zho,chi,cmn Chinese Mandarin
zu zul Zulu
- ast Asturian
- ban Balinese
- bho Bhojpuri
- ceb Cebuano
- cop Coptic
- dsb Lower_Sorbian
- fro Old_French
- fur Friulian
- gez Geez
- got Gothic
- grc Ancient_Greek
- gsw Swiss_German
- hak Hakka
- haw Hawaiian
- hsb Upper_Sorbian
- hyw Western_Armenian
- ilo Ilocano
- kab Kabyle
- kac Kachin Jingpho
- kpv Komi-Zyrian
- lij Ligurian
- lmo Lombard
- lus Mizo
- lzh Classical_Chinese Literary_Chinese
- mag Magahi
- mai Maithili
- mni Manipuri Meitei
- myv Erzya
- nan Min_Nan Hokkien
- nds Low_German Low_Saxon
- nso Northern_Sotho Pedi
- orv Old_East_Slavic
- pcm Nigerian_Pidgin Naija
- pms Piedmontese
- sah Yakut Sakha
- sat Santali
- scn Sicilian
- shn Shan
- szl Silesian
- tpi Tok_Pisin
- tyv Tuvan
- udm Udmurt
- vec Venetian
- war Waray
- wuu Wu Shanghainese
- yue Cantonese
"""


def _read_table() -> tuple[dict[str, str], dict[str, str]]:
    codes: dict[str, str] = {}
    names: dict[str, str] = {}
    for short, long, *spoken in map(str.split, _TABLE.strip().splitlines()):
        code = short if short != "-" else long
        names[code] = spoken[0].replace("_", " ")
        codes |= dict.fromkeys([code, *long.split(","), *(name.lower() for name in spoken)], code)
    return codes, names


_CODES, LANGUAGES = _read_table()
"""English names of languages by ISO 639 code, of two letters or, if there is none, of three."""

#: What follows a language in a tag: a script, and a region of letters or digits.
_TAG = re.compile(r"([a-z]{2,3})(?:[-_][a-z]{4})?(?:[-_](?:[a-z]{2}|\d{3}))?", re.IGNORECASE)


def know_language(name: str) -> str | None:
    """Return the ISO 639 code of a language, from a code or name; None for an unknown one.

    Args:
        name: a code of two or three letters, perhaps with a script and a region, such as ``pt_BR``
            and ``zho-Hans``; or an English name. Case does not matter.
    """
    tag = _TAG.fullmatch(name)
    spoken = name.lower().replace(" ", "_")
    return _CODES.get(spoken) or (_CODES.get(tag[1].lower()) if tag else None)


def find_language(path: str | PurePath) -> str | None:
    """Return the ISO 639 code of the language in a file's name; None if no language is in it.

    Args:
        path: the file, such as ``english.txt``, ``train.eng`` or ``test_pt-BR.gz``. The last part
            of the name that is a language counts.
    """
    for part in reversed(PurePath(path).name.split(".")):
        pieces = re.split("[-_ ]", part)
        tails = ("_".join(pieces[first:]) for first in range(len(pieces)))
        code = next(filter(None, map(know_language, tails)), None)
        if code:
            return code
    return None
