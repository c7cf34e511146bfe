"""The bilingual word list of the built-in corpus, as tables.

Each table pairs English with German one to one. A class of nouns or verbs has its own syntactic
use (persons are subjects, a creation verb in the past is a relative clause, ...), so that the
head of a word can be told from the words and their order alone.

- Noun: ``english[/irregular plural]=German.gender.plural``. Gender is ``m``, ``f``, ``n`` or ``w``
  (masculine of the weak declension); the plural is an ending, ``"`` for umlaut, ``-`` for none.
- Verb: ``english [past participle]: German [3sg past participle]``, the forms in brackets where the
  verb is irregular; ``|`` ends a separable prefix, ``+dat`` is for a dative object.
- Adjective: ``english=German`` in the form that takes endings; ``+`` when it is compared, ``"``
  when it is compared with umlaut.
- All else: ``english=German``, or one word that is the same in both.
"""

from .morphology import Adjective, Noun, Verb


def _nouns(table: str) -> tuple[Noun, ...]:
    return tuple(Noun.parse(entry) for entry in table.split())


def _verbs(table: str) -> tuple[Verb, ...]:
    return tuple(Verb.parse(entry) for entry in table.split(";"))


def _adjectives(table: str) -> tuple[Adjective, ...]:
    return tuple(Adjective.parse(entry) for entry in table.split())


def _pairs(table: str) -> tuple[tuple[str, str], ...]:
    return tuple((en, de or en) for en, _, de in (entry.partition("=") for entry in table.split()))


NOUNS = {
    "person": _nouns("""
teacher=Lehrer.m.- farmer=Bauer.w.n child/children=Kind.n.er woman/women=Frau.f.en
man/men=Mann.m."er doctor=Arzt.m."e girl=Mädchen.n.- boy=Junge.w.n student=Student.w.en
neighbour=Nachbar.w.n friend=Freund.m.e sister=Schwester.f.n brother=Bruder.m." mother=Mutter.f."
father=Vater.m." worker=Arbeiter.m.- king=König.m.e queen=Königin.f.nen judge=Richter.m.-
guest=Gast.m."e aunt=Tante.f.n uncle=Onkel.m.- grandmother=Großmutter.f." grandfather=Großvater.m."
daughter=Tochter.f." son=Sohn.m."e colleague=Kollege.w.n customer=Kunde.w.n boss=Chef.m.s
nurse=Krankenschwester.f.n lawyer=Anwalt.m."e baker=Bäcker.m.- artist=Künstler.m.- painter=Maler.m.-
poet=Dichter.m.- singer=Sänger.m.- dancer=Tänzer.m.- actor=Schauspieler.m.- author=Autor.m.en
journalist=Journalist.w.en politician=Politiker.m.- president=Präsident.w.en minister=Minister.m.-
mayor=Bürgermeister.m.- policeman/policemen=Polizist.w.en soldier=Soldat.w.en sailor=Matrose.w.n
captain=Kapitän.m.e pilot=Pilot.w.en engineer=Ingenieur.m.e mechanic=Mechaniker.m.-
carpenter=Tischler.m.- butcher=Metzger.m.- hunter=Jäger.m.- fisherman/fishermen=Fischer.m.-
gardener=Gärtner.m.- chef=Koch.m."e waiter=Kellner.m.- seller=Verkäufer.m.- merchant=Händler.m.-
secretary=Sekretärin.f.nen tailor=Schneider.m.- hairdresser=Friseur.m.e librarian=Bibliothekar.m.e
scientist=Wissenschaftler.m.- researcher=Forscher.m.- professor=Professor.m.en
philosopher=Philosoph.w.en priest=Priester.m.- monk=Mönch.m.e nun=Nonne.f.n thief/thieves=Dieb.m.e
robber=Räuber.m.- witness=Zeuge.w.n guard=Wächter.m.- prince=Prinz.w.en princess=Prinzessin.f.nen
witch=Hexe.f.n giant=Riese.w.n dwarf=Zwerg.m.e knight=Ritter.m.- hero/heroes=Held.w.en
driver=Fahrer.m.- passenger=Fahrgast.m."e hiker=Wanderer.m.- player=Spieler.m.- athlete=Sportler.m.-
runner=Läufer.m.- swimmer=Schwimmer.m.- cyclist=Radfahrer.m.- clown=Clown.m.s magician=Zauberer.m.-
musician=Musiker.m.- pianist=Pianist.w.en violinist=Geiger.m.- composer=Komponist.w.en
director=Direktor.m.en owner=Besitzer.m.- tenant=Mieter.m.- landlord=Vermieter.m.- reader=Leser.m.-
translator=Übersetzer.m.- interpreter=Dolmetscher.m.- spy=Spion.m.e
"""),
    "animal": _nouns("""
dog=Hund.m.e cat=Katze.f.n horse=Pferd.n.e cow=Kuh.f."e bird=Vogel.m." pig=Schwein.n.e
goat=Ziege.f.n donkey=Esel.m.- chicken=Huhn.n."er goose/geese=Gans.f."e duck=Ente.f.n
mouse/mice=Maus.f."e rat=Ratte.f.n rabbit=Kaninchen.n.- hare=Hase.w.n fox=Fuchs.m."e
wolf/wolves=Wolf.m."e bear=Bär.w.en lion=Löwe.w.n tiger=Tiger.m.- elephant=Elefant.w.en
monkey=Affe.w.n snake=Schlange.f.n frog=Frosch.m."e spider=Spinne.f.n butterfly=Schmetterling.m.e
bee=Biene.f.n swan=Schwan.m."e owl=Eule.f.n eagle=Adler.m.- raven=Rabe.w.n parrot=Papagei.m.en
turtle=Schildkröte.f.n whale=Wal.m.e dolphin=Delfin.m.e hedgehog=Igel.m.- squirrel=Eichhörnchen.n.-
camel=Kamel.n.e zebra=Zebra.n.s giraffe=Giraffe.f.n penguin=Pinguin.m.e puppy=Welpe.w.n
calf/calves=Kalb.n."er lamb=Lamm.n."er
"""),
    "thing": _nouns("""
book=Buch.n."er letter=Brief.m.e newspaper=Zeitung.f.en table=Tisch.m.e chair=Stuhl.m."e
lamp=Lampe.f.n door=Tür.f.en window=Fenster.n.- car=Auto.n.s bicycle=Fahrrad.n."er picture=Bild.n.er
bread=Brot.n.e cake=Kuchen.m.- apple=Apfel.m." bottle=Flasche.f.n cup=Tasse.f.n plate=Teller.m.-
box=Kiste.f.n bag=Tasche.f.n song=Lied.n.er story=Geschichte.f.n pear=Birne.f.n plum=Pflaume.f.n
egg=Ei.n.er soup=Suppe.f.n cheese=Käse.m.- sausage=Wurst.f."e potato/potatoes=Kartoffel.f.n
carrot=Möhre.f.n onion=Zwiebel.f.n nut=Nuss.f."e bowl=Schüssel.f.n pot=Topf.m."e pan=Pfanne.f.n
basket=Korb.m."e suitcase=Koffer.m.- shirt=Hemd.n.en jacket=Jacke.f.n coat=Mantel.m."
dress=Kleid.n.er shoe=Schuh.m.e sock=Socke.f.n glove=Handschuh.m.e ring=Ring.m.e chain=Kette.f.n
clock=Uhr.f.en doll=Puppe.f.n ball=Ball.m."e kite=Drachen.m.- drum=Trommel.f.n violin=Geige.f.n
piano=Klavier.n.e flute=Flöte.f.n guitar=Gitarre.f.n poem=Gedicht.n.e novel=Roman.m.e
article=Artikel.m.- report=Bericht.m.e map=Karte.f.n photo=Foto.n.s painting=Gemälde.n.-
statue=Statue.f.n coin=Münze.f.n stamp=Briefmarke.f.n gift=Geschenk.n.e flower=Blume.f.n
rose=Rose.f.n tree=Baum.m."e bush=Busch.m."e ladder=Leiter.f.n fence=Zaun.m."e wall=Mauer.f.n
roof=Dach.n."er bed=Bett.n.en sofa=Sofa.n.s carpet=Teppich.m.e curtain=Vorhang.m."e
mirror=Spiegel.m.- candle=Kerze.f.n stove=Herd.m.e oven=Ofen.m." cupboard=Schrank.m."e
shelf/shelves=Regal.n.e drawer=Schublade.f.n pillow=Kissen.n.- blanket=Decke.f.n radio=Radio.n.s
computer=Computer.m.- telephone=Telefon.n.e machine=Maschine.f.n engine=Motor.m.en boat=Boot.n.e
ship=Schiff.n.e wagon=Wagen.m.- train=Zug.m."e bus=Bus.m.se tent=Zelt.n.e flag=Fahne.f.n
passport=Pass.m."e ticket=Fahrkarte.f.n contract=Vertrag.m."e bill=Rechnung.f.en
document=Dokument.n.e plan=Plan.m."e secret=Geheimnis.n.se answer=Antwort.f.en question=Frage.f.n
mistake=Fehler.m.- idea=Idee.f.n
"""),
    "instrument": _nouns("""
key=Schlüssel.m.- knife/knives=Messer.n.- hammer=Hammer.m." fork=Gabel.f.n spoon=Löffel.m.-
camera=Kamera.f.s brush=Pinsel.m.- axe=Axt.f."e shovel=Schaufel.f.n rope=Seil.n.e needle=Nadel.f.n
stick=Stock.m."e rake=Rechen.m.- broom=Besen.m.- bucket=Eimer.m.- sponge=Schwamm.m."e
towel=Handtuch.n."er telescope=Fernrohr.n.e torch=Fackel.f.n net=Netz.n.e hook=Haken.m.-
trap=Falle.f.n drill=Bohrer.m.- tool=Werkzeug.n.e pencil=Bleistift.m.e spade=Spaten.m.-
"""),
    "attribute": _nouns("""
hat=Hut.m."e beard=Bart.m."e cap=Mütze.f.n scarf/scarves=Schal.m.s umbrella=Regenschirm.m.e
wig=Perücke.f.n nose=Nase.f.n moustache=Schnurrbart.m."e crown=Krone.f.n mask=Maske.f.n
scar=Narbe.f.n necklace=Halskette.f.n backpack=Rucksack.m."e belt=Gürtel.m.- apron=Schürze.f.n
veil=Schleier.m.- sword=Schwert.n.er lantern=Laterne.f.n boot=Stiefel.m.- tie=Krawatte.f.n
"""),
    "place": _nouns("""
garden=Garten.m." kitchen=Küche.f.n house=Haus.n."er park=Park.m.s market=Markt.m."e
forest=Wald.m."er street=Straße.f.n church=Kirche.f.n shop=Laden.m." hotel=Hotel.n.s
theatre=Theater.n.- library=Bibliothek.f.en office=Büro.n.s room=Zimmer.n.- bridge=Brücke.f.n
field=Feld.n.er meadow=Wiese.f.n cinema=Kino.n.s restaurant=Restaurant.n.s café=Café.n.s
cellar=Keller.m.- attic=Dachboden.m." castle=Schloss.n."er tower=Turm.m."e harbour=Hafen.m."
beach=Strand.m."e island=Insel.f.n valley=Tal.n."er lake=See.m.n river=Fluss.m."e cave=Höhle.f.n
farm=Bauernhof.m."e barn=Scheune.f.n stable=Stall.m."e mill=Mühle.f.n station=Bahnhof.m."e
airport=Flughafen.m." square=Platz.m."e tunnel=Tunnel.m.- yard=Hof.m."e pub=Kneipe.f.n
bakery=Bäckerei.f.en pharmacy=Apotheke.f.n prison=Gefängnis.n.se palace=Palast.m."e
temple=Tempel.m.- desert=Wüste.f.n monastery=Kloster.n." cottage=Hütte.f.n
"""),
}

# First parts of compounds: "school teacher" is "Schullehrer", "ex-teacher" is "Exlehrer".
MODIFIERS = {
    "person": _pairs("""
village=Dorf city=Stadt ex-=Ex school=Schul hospital=Krankenhaus company=Firmen
university=Universitäts factory=Fabrik court=Hof army=Armee sports=Sport
"""),
    "thing": _pairs("""
wood=Holz stone=Stein glass=Glas mini-=Mini iron=Eisen silver=Silber super-=Super gold=Gold
paper=Papier leather=Leder winter=Winter summer=Sommer toy=Spielzeug steel=Stahl holiday=Ferien
family=Familien
"""),
}

VERBS = {
    # The past of these is in clauses of reason,
    "perception": _verbs("""
see saw seen: sehen sieht sah gesehen; find found found: finden findet fand gefunden; need:
brauchen; love: lieben; lose lost lost: verlieren verliert verlor verloren; hear heard heard: hören;
seek sought sought: suchen; admire: bewundern; notice: bemerken; observe: beobachten; discover:
entdecken; forget forgot forgotten: vergessen vergisst vergaß vergessen; describe: beschreiben
beschreibt beschrieb beschrieben; photograph: fotografieren; measure: messen misst maß gemessen;
weigh: wiegen wiegt wog gewogen; choose chose chosen: aus|wählen; examine: untersuchen untersucht
untersuchte untersucht; reject: ab|lehnen; recognise: erkennen erkennt erkannte erkannt
"""),
    # the participle of these in relative clauses with "who",
    "handling": _verbs("""
take took taken: nehmen nimmt nahm genommen; open: auf|machen; close: zu|machen; carry: tragen trägt
trug getragen; hold held held: halten hält hielt gehalten; fetch: ab|holen; clean: putzen; hide hid
hidden: verstecken; steal stole stolen: stehlen stiehlt stahl gestohlen; sell sold sold: verkaufen;
touch: berühren; wash: waschen wäscht wusch gewaschen; destroy: zerstören; repair: reparieren;
collect: sammeln; test: aus|probieren; borrow: aus|leihen leiht lieh geliehen; pack: ein|packen;
unpack: aus|packen; prepare: vor|bereiten; wrap wrapped wrapped: ein|wickeln; lift: hoch|heben hebt
hob gehoben; lock: ab|schließen schließt schloss geschlossen; accept: an|nehmen nimmt nahm genommen
"""),
    # the past of these in those with "which".
    "creation": _verbs("""
buy bought bought: kaufen; write wrote written: schreiben schreibt schrieb geschrieben; build built
built: bauen; bake: backen backt backte gebacken; draw drew drawn: zeichnen; order: bestellen; win
won won: gewinnen gewinnt gewann gewonnen; rent: mieten; design: entwerfen entwirft entwarf
entworfen; invent: erfinden erfindet erfand erfunden; produce: her|stellen; create: erschaffen
erschafft erschuf erschaffen; publish: veröffentlichen; translate: übersetzen übersetzt übersetzte
übersetzt; inherit: erben erbt erbte geerbt; receive: bekommen bekommt bekam bekommen; own: besitzen
besitzt besaß besessen
"""),
    "social": _verbs("""
visit: besuchen; call: an|rufen ruft rief gerufen; invite: ein|laden lädt lud geladen; greet:
grüßen; meet met met: treffen trifft traf getroffen; marry: heiraten; kiss: küssen; hug hugged
hugged: umarmen umarmt umarmte umarmt; ask: fragen; warn: warnen; wake woke woken: auf|wecken;
interrupt: unterbrechen unterbricht unterbrach unterbrochen; insult: beleidigen; criticise:
kritisieren; comfort: trösten; accompany: begleiten; arrest: verhaften; introduce: vor|stellen;
exclude: aus|schließen schließt schloss geschlossen; deceive: betrügen betrügt betrog betrogen;
hate: hassen; help: helfen hilft half geholfen +dat; thank: danken +dat; trust: vertrauen +dat;
congratulate: gratulieren +dat; obey: gehorchen +dat; serve: dienen +dat; forgive forgave forgiven:
vergeben vergibt vergab vergeben +dat; contradict: widersprechen widerspricht widersprach
widersprochen +dat; threaten: drohen +dat; support: bei|stehen steht stand gestanden +dat; assist:
assistieren +dat; advise: raten rät riet geraten +dat
"""),
    "transfer": _verbs("""
give gave given: geben gibt gab gegeben; show: zeigen; send sent sent: schicken; lend lent lent:
leihen leiht lieh geliehen; bring brought brought: bringen bringt brachte gebracht; offer: an|bieten
bietet bot geboten; promise: versprechen verspricht versprach versprochen; hand: überreichen
überreicht überreichte überreicht; owe: schulden; leave left left: hinterlassen hinterlässt
hinterließ hinterlassen; grant: gewähren; pass: reichen; deny: verweigern
"""),
    "motion": _verbs("""
walk: gehen geht ging gegangen; run ran run: laufen läuft lief gelaufen; drive drove driven: fahren
fährt fuhr gefahren; travel travelled travelled: reisen; come came come: kommen kommt kam gekommen;
return: zurück|kehren; fly flew flown: fliegen fliegt flog geflogen; jump: springen springt sprang
gesprungen; swim swam swum: schwimmen schwimmt schwamm geschwommen; climb: klettern; hike: wandern;
ride rode ridden: reiten reitet ritt geritten; sail: segeln; hurry: eilen; flee fled fled: fliehen
flieht floh geflohen; march: marschieren; stumble: stolpern; creep crept crept: schleichen schleicht
schlich geschlichen; rush: stürmen; crawl: kriechen kriecht kroch gekrochen; move: um|ziehen zieht
zog gezogen
"""),
    "activity": _verbs("""
sleep slept slept: schlafen schläft schlief geschlafen; laugh: lachen; cry: weinen; work: arbeiten;
sing sang sung: singen singt sang gesungen; dance: tanzen; wait: warten; smile: lächeln; dream:
träumen; play: spielen; stop stopped stopped: auf|hören; listen: zu|hören; cough: husten; sneeze:
niesen; pray: beten betet betete gebetet; smoke: rauchen; suffer: leiden leidet litt gelitten;
study: studieren; fight fought fought: kämpfen; participate: teil|nehmen nimmt nahm genommen;
whistle: pfeifen pfeift pfiff gepfiffen
"""),
    "speech": _verbs("""
say said said: sagen; think thought thought: denken denkt dachte gedacht; believe: glauben; know
knew known: wissen weiß wusste gewusst; hope: hoffen; claim: behaupten; explain: erklären; admit
admitted admitted: zu|geben gibt gab gegeben; fear: befürchten; suspect: vermuten; doubt:
bezweifeln; announce: an|kündigen; assume: voraus|setzen; stress: betonen; confirm: bestätigen;
conclude: schließen schließt schloss geschlossen; reply: antworten; repeat: wiederholen wiederholt
wiederholte wiederholt; feel felt felt: spüren; swear swore sworn: schwören schwört schwor
geschworen; understand understood understood: verstehen versteht verstand verstanden
"""),
}

ADJECTIVES = _adjectives("""
old=alt" young=jung" big=groß" small=klein+ good=gut new=neu+ long=lang" short=kurz" poor=arm"
rich=reich+ strong=stark" weak=schwach" warm=warm" cold=kalt" hot=heiß+ clever=klug" stupid=dumm"
sick=krank" healthy=gesund" happy=glücklich+ sad=traurig+ beautiful=schön ugly=hässlich+
proud=stolz+ brave=mutig+ lazy=faul+ famous=berühmt quiet=still loud=laut+ dirty=schmutzig+
heavy=schwer+ light=leicht+ thick=dick+ thin=dünn+ wide=breit+ deep=tief+ round=rund sharp=scharf"
soft=weich+ hard=hart" wild=wild+ rare=selten strange=seltsam dangerous=gefährlich important=wichtig
interesting=interessant boring=langweilig funny=lustig+ serious=ernst honest=ehrlich
curious=neugierig nervous=nervös angry=wütend grateful=dankbar careful=vorsichtig patient=geduldig
impatient=ungeduldig polite=höflich impolite=unhöflich unhappy=unglücklich dishonest=unehrlich
unimportant=unwichtig ungrateful=undankbar modern=modern ancient=uralt golden=golden expensive=teur
cheap=billig+ valuable=wertvoll worthless=wertlos useful=nützlich useless=nutzlos empty=leer
full=voll red=rot blue=blau green=grün yellow=gelb black=schwarz white=weiß brown=braun grey=grau
light-red=hellrot dark-red=dunkelrot light-blue=hellblau dark-blue=dunkelblau light-green=hellgrün
dark-green=dunkelgrün light-brown=hellbraun dark-brown=dunkelbraun light-grey=hellgrau
dark-grey=dunkelgrau kind=freundlich tired=müd wise=weis lonely=einsam homeless=obdachlos
hopeless=hoffnungslos helpless=hilflos fearless=furchtlos sleepless=schlaflos harmless=harmlos
cautious=behutsam French=französisch English=englisch German=deutsch Italian=italienisch
Spanish=spanisch Polish=polnisch Russian=russisch Chinese=chinesisch Greek=griechisch
Turkish=türkisch Dutch=niederländisch Danish=dänisch Norwegian=norwegisch Swedish=schwedisch
Japanese=japanisch American=amerikanisch Brazilian=brasilianisch Indian=indisch
Austrian=österreichisch
""")

ADVERBS = _pairs("""
often=oft always=immer sometimes=manchmal seldom=selten never=nie usually=meistens gladly=gern
quickly=schnell slowly=langsam secretly=heimlich immediately=sofort finally=endlich
suddenly=plötzlich really=wirklich probably=wahrscheinlich unfortunately=leider
obviously=offensichtlich quietly=leise happily=fröhlich patiently=geduldig already=schon
""")
SENTENCE_ADVERBS = _pairs("""
today=heute tomorrow=morgen now=jetzt soon=bald here=hier there=dort perhaps=vielleicht later=später
nowadays=heutzutage outside=draußen upstairs=oben downstairs=unten everywhere=überall
meanwhile=inzwischen therefore=deshalb nevertheless=trotzdem then=dann first=zuerst
""")
WEEKDAYS = _pairs("""
Monday=Montag Tuesday=Dienstag Wednesday=Mittwoch Thursday=Donnerstag Friday=Freitag
Saturday=Samstag Sunday=Sonntag
""")
MONTHS = _pairs("""
January=Januar February=Februar March=März April May=Mai June=Juni July=Juli August September
October=Oktober November December=Dezember
""")

NAMES = _pairs("""
Anna Peter Maria Thomas Julia Michael Sarah Daniel Laura Martin Lisa Stefan Emma Paul Clara Felix
Sophie Lukas Hannah Jonas Katharina Andreas Sabine Markus Monika Wolfgang Ingrid Jürgen Ursula Klaus
Petra Frank Susanne Uwe Heike Dieter Gisela Günther Renate Helmut Brigitte Manfred Karin
""")
TOWNS = _pairs("""
Berlin Hamburg Munich=München Cologne=Köln Vienna=Wien Paris Rome=Rom London Frankfurt Zurich=Zürich
Stuttgart Leipzig Dresden Hanover=Hannover Nuremberg=Nürnberg Bremen Prague=Prag Warsaw=Warschau
Moscow=Moskau Milan=Mailand Naples=Neapel Venice=Venedig Florence=Florenz Lisbon=Lissabon Madrid
Athens=Athen Brussels=Brüssel Geneva=Genf Basel Salzburg Copenhagen=Kopenhagen Stockholm Oslo
Tokyo=Tokio Beijing=Peking Cairo=Kairo Jerusalem Istanbul Budapest Belgrade=Belgrad
""")

# English, stem of the German word, the article after which adjectives inflect as after this one.
SINGULAR_DETERMINERS = (
    ("the", "d", "der"), ("a", "ein", "ein"), ("this", "dies", "der"), ("my", "mein", "ein"),
    ("our", "unser", "ein"), ("every", "jed", "der"),
)  # fmt: skip
PLURAL_DETERMINERS = (
    ("the", "d", "der"), ("", "", ""), ("these", "dies", "der"), ("my", "mein", "ein"),
    ("our", "unser", "ein"), ("many", "viel", ""), ("some", "einig", ""),
)  # fmt: skip
DEFINITE = ("the", "this", "these", "my", "our")

PRONOUNS = (("he", "er", False), ("she", "sie", False), ("we", "wir", True), ("they", "sie", True))
MODALS = (
    ("must", "muss", "müssen"), ("can", "kann", "können"), ("will", "wird", "werden"),
    ("should", "soll", "sollen"), ("may", "darf", "dürfen"),
)  # fmt: skip

# English, German, the case that the German preposition governs.
PLACE_PREPOSITIONS = (("in", "in", "dat"), ("behind", "hinter", "dat"), ("beside", "neben", "dat"))
GOAL_PREPOSITIONS = (
    ("into", "in", "acc"), ("to", "zu", "dat"), ("through", "durch", "acc"),
    ("around", "um", "acc"), ("across", "über", "acc"),
)  # fmt: skip
INSTRUMENT_PREPOSITIONS = (("with", "mit", "dat"), ("without", "ohne", "acc"))
CONTRACTIONS = {
    ("in", "dem"): "im", ("in", "das"): "ins", ("zu", "dem"): "zum", ("zu", "der"): "zur",
}  # fmt: skip
DATES = (("on", "am", WEEKDAYS), ("in", "im", MONTHS))

_ONES = _pairs("one=ein two=zwei three=drei four=vier five=fünf six=sechs seven=sieben eight=acht"
               " nine=neun")  # fmt: skip
_TENS = _pairs("twenty=zwanzig thirty=dreißig forty=vierzig fifty=fünfzig sixty=sechzig"
               " seventy=siebzig eighty=achtzig ninety=neunzig")  # fmt: skip
NUMERALS = (
    *_ONES[1:],
    *_pairs("ten=zehn eleven=elf twelve=zwölf"),
    *((f"{ten}-{one}", f"{ein}und{zehn}") for ten, zehn in _TENS for one, ein in _ONES),
)
