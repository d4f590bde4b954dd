package board

import "strings"

// atlas is the standard map, a province a line, in the order of codes:
//
//	code | name | whose home centre with its first unit, or neutral | where an army goes | where a fleet goes
//
// Where a province has several coasts, the fleet's part stands once for each.
//
//nolint:dupword // a line may end with the place that the next one is about
const atlas = `
ADR | Adriatic Sea          |             |                             | ALB APU ION TRI VEN
AEG | Aegean Sea            |             |                             | BUL/SC CON EAS GRE ION SMY
ALB | Albania               |             | GRE SER TRI                 | ADR GRE ION TRI
ANK | Ankara                | Turkey F    | ARM CON SMY                 | ARM BLA CON
APU | Apulia                |             | NAP ROM VEN                 | ADR ION NAP VEN
ARM | Armenia               |             | ANK SEV SMY SYR             | ANK BLA SEV
BAL | Baltic Sea            |             |                             | BER BOT DEN KIE LVN PRU SWE
BAR | Barents Sea           |             |                             | NWG NWY STP/NC
BEL | Belgium               | neutral     | BUR HOL PIC RUH             | ENG HOL NTH PIC
BER | Berlin                | Germany A   | KIE MUN PRU SIL             | BAL KIE PRU
BLA | Black Sea             |             |                             | ANK ARM BUL/EC CON RUM SEV
BOH | Bohemia               |             | GAL MUN SIL TYR VIE         |
BOT | Gulf of Bothnia       |             |                             | BAL FIN LVN STP/SC SWE
BRE | Brest                 | France F    | GAS PAR PIC                 | ENG GAS MAO PIC
BUD | Budapest              | Austria A   | GAL RUM SER TRI VIE         |
BUL | Bulgaria              | neutral     | CON GRE RUM SER             | /EC BLA CON RUM /SC AEG CON GRE
BUR | Burgundy              |             | BEL GAS MAR MUN PAR PIC RUH |
CLY | Clyde                 |             | EDI LVP                     | EDI LVP NAO NWG
CON | Constantinople        | Turkey A    | ANK BUL SMY                 | AEG ANK BLA BUL/EC BUL/SC SMY
DEN | Denmark               | neutral     | KIE SWE                     | BAL HEL KIE NTH SKA SWE
EAS | Eastern Mediterranean |             |                             | AEG ION SMY SYR
EDI | Edinburgh             | England F   | CLY LVP YOR                 | CLY NTH NWG YOR
ENG | English Channel       |             |                             | BEL BRE IRI LON MAO NTH PIC WAL
FIN | Finland               |             | NWY STP SWE                 | BOT STP/SC SWE
GAL | Galicia               |             | BOH BUD RUM SIL UKR VIE WAR |
GAS | Gascony               |             | BRE BUR MAR PAR SPA         | BRE MAO SPA/NC
GRE | Greece                | neutral     | ALB BUL SER                 | AEG ALB BUL/SC ION
HEL | Helgoland Bight       |             |                             | DEN HOL KIE NTH
HOL | Holland               | neutral     | BEL KIE RUH                 | BEL HEL KIE NTH
ION | Ionian Sea            |             |                             | ADR AEG ALB APU EAS GRE NAP TUN TYS
IRI | Irish Sea             |             |                             | ENG LVP MAO NAO WAL
KIE | Kiel                  | Germany F   | BER DEN HOL MUN RUH         | BAL BER DEN HEL HOL
LON | London                | England F   | WAL YOR                     | ENG NTH WAL YOR
LVN | Livonia               |             | MOS PRU STP WAR             | BAL BOT PRU STP/SC
LVP | Liverpool             | England A   | CLY EDI WAL YOR             | CLY IRI NAO WAL
LYO | Gulf of Lyon          |             |                             | MAR PIE SPA/SC TUS TYS WES
MAO | Mid-Atlantic Ocean    |             |                             | BRE ENG GAS IRI NAF NAO POR SPA/NC SPA/SC WES
MAR | Marseilles            | France A    | BUR GAS PIE SPA             | LYO PIE SPA/SC
MOS | Moscow                | Russia A    | LVN SEV STP UKR WAR         |
MUN | Munich                | Germany A   | BER BOH BUR KIE RUH SIL TYR |
NAF | North Africa          |             | TUN                         | MAO TUN WES
NAO | North Atlantic Ocean  |             |                             | CLY IRI LVP MAO NWG
NAP | Naples                | Italy F     | APU ROM                     | APU ION ROM TYS
NTH | North Sea             |             |                             | BEL DEN EDI ENG HEL HOL LON NWG NWY SKA YOR
NWG | Norwegian Sea         |             |                             | BAR CLY EDI NAO NTH NWY
NWY | Norway                | neutral     | FIN STP SWE                 | BAR NTH NWG SKA STP/NC SWE
PAR | Paris                 | France A    | BRE BUR GAS PIC             |
PIC | Picardy               |             | BEL BRE BUR PAR             | BEL BRE ENG
PIE | Piedmont              |             | MAR TUS TYR VEN             | LYO MAR TUS
POR | Portugal              | neutral     | SPA                         | MAO SPA/NC SPA/SC
PRU | Prussia               |             | BER LVN SIL WAR             | BAL BER LVN
ROM | Rome                  | Italy A     | APU NAP TUS VEN             | NAP TUS TYS
RUH | Ruhr                  |             | BEL BUR HOL KIE MUN         |
RUM | Rumania               | neutral     | BUD BUL GAL SER SEV UKR     | BLA BUL/EC SEV
SER | Serbia                | neutral     | ALB BUD BUL GRE RUM TRI     |
SEV | Sevastopol            | Russia F    | ARM MOS RUM UKR             | ARM BLA RUM
SIL | Silesia               |             | BER BOH GAL MUN PRU WAR     |
SKA | Skagerrak             |             |                             | DEN NTH NWY SWE
SMY | Smyrna                | Turkey A    | ANK ARM CON SYR             | AEG CON EAS SYR
SPA | Spain                 | neutral     | GAS MAR POR                 | /NC GAS MAO POR /SC LYO MAO MAR POR WES
STP | St Petersburg         | Russia F/SC | FIN LVN MOS NWY             | /NC BAR NWY /SC BOT FIN LVN
SWE | Sweden                | neutral     | DEN FIN NWY                 | BAL BOT DEN FIN NWY SKA
SYR | Syria                 |             | ARM SMY                     | EAS SMY
TRI | Trieste               | Austria F   | ALB BUD SER TYR VEN VIE     | ADR ALB VEN
TUN | Tunis                 | neutral     | NAF                         | ION NAF TYS WES
TUS | Tuscany               |             | PIE ROM VEN                 | LYO PIE ROM TYS
TYR | Tyrolia               |             | BOH MUN PIE TRI VEN VIE     |
TYS | Tyrrhenian Sea        |             |                             | ION LYO NAP ROM TUN TUS WES
UKR | Ukraine               |             | GAL MOS RUM SEV WAR         |
VEN | Venice                | Italy A     | APU PIE ROM TRI TUS TYR     | ADR APU TRI
VIE | Vienna                | Austria A   | BOH BUD GAL TRI TYR         |
WAL | Wales                 |             | LON LVP YOR                 | ENG IRI LON LVP
WAR | Warsaw                | Russia A    | GAL LVN MOS PRU SIL UKR     |
WES | Western Mediterranean |             |                             | LYO MAO NAF SPA/SC TUN TYS
YOR | Yorkshire             |             | EDI LON LVP WAL             | EDI LON NTH
`

// read fills the board from an atlas. First all places get their numbers, then the
// borders are drawn.
func (b *Board) read(atlas string) {
	lines := strings.Split(strings.TrimSpace(atlas), "\n")
	rows := make([][]string, len(lines))
	coast := Location(Provinces)
	for i, line := range lines {
		rows[i] = strings.Split(line, "|")
		p := Province(i)
		b.codes[i], b.provinces[i] = strings.TrimSpace(rows[i][0]), p
		b.names[i] = strings.TrimSpace(rows[i][1])
		for word := range strings.FieldsSeq(rows[i][4]) {
			if strings.HasPrefix(word, "/") {
				b.codes[coast], b.provinces[coast] = b.codes[i]+word, p
				b.coasts[i] = append(b.coasts[i], coast)
				coast++
			}
		}
	}
	for i, row := range rows {
		b.border(Province(i), strings.Fields(row[3]), strings.Fields(row[4]))
		b.settle(Province(i), strings.Fields(row[2]))
	}
}

// border draws the borders of p.
func (b *Board) border(p Province, army, fleet []string) {
	switch {
	case len(army) == 0:
		b.terrain[p] = Sea
	case len(fleet) > 0:
		b.terrain[p] = Coast
	}
	if len(fleet) > 0 && len(b.coasts[p]) == 0 {
		b.coasts[p] = []Location{Location(p)}
	}
	for _, word := range army {
		to, _ := b.ByCode(word)
		b.army[p].Add(b.provinces[to])
	}
	from := Location(p)
	for _, word := range fleet {
		if strings.HasPrefix(word, "/") {
			from, _ = b.ByCode(b.codes[p] + word)
			continue
		}
		to, _ := b.ByCode(word)
		b.fleet[from].Add(to)
		b.reach[from].Add(b.provinces[to])
	}
	b.near[p] = b.army[p]
	for _, at := range b.coasts[p] {
		b.near[p] = b.near[p].Or(b.reach[at])
	}
}

// settle reads whose centre p is, and what stands there at first.
func (b *Board) settle(p Province, words []string) {
	if len(words) == 0 {
		return
	}
	b.centres.Add(p)
	w, ok := ParsePower(words[0])
	if !ok {
		return
	}
	b.homes[w].Add(p)
	u := Unit{Power: w, Type: Army, Location: Location(p)}
	if kind, coast, _ := strings.Cut(words[1], "/"); kind == "F" {
		u.Type = Fleet
		if coast != "" {
			u.Location, _ = b.ByCode(b.codes[p] + "/" + coast)
		}
	}
	b.start = append(b.start, u)
}
