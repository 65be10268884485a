package charset

// ByCollation gives the character set of a collation's number, as session variables in binlogs have it; nil for binary's, and
// for numbers that no server has.
func ByCollation(id uint16) *Charset { return ByName(NameOf(int(id))) }

// NameOf gives the name of a collation's character set, binary included; "" for numbers that no server has.
func NameOf(collation int) string {
	if collation < 0 || collation >= len(nameByID) {
		return ""
	}
	return nameByID[collation]
}

var nameByID = func() (names [1024]string) {
	for name, ids := range collationIDs {
		for _, r := range ids {
			for id := r.first; id <= r.last; id++ {
				names[id] = name
			}
		}
	}
	return names
}()

type span struct{ first, last uint16 }

func one(id uint16) span { return span{id, id} }

// collationIDs are the numbers of information_schema.COLLATIONS. Numbers from 255 on belong to utf8mb4, later versions' too.
var collationIDs = map[string][]span{
	"armscii8": {one(32), one(64)}, "ascii": {one(11), one(65)}, "binary": {one(63)}, "big5": {one(1), one(84)}, "cp1250": {one(26), one(34), one(44), one(66), one(99)},
	"cp1251": {one(14), one(23), {50, 52}}, "cp1256": {one(57), one(67)}, "cp1257": {one(29), {58, 59}}, "cp850": {one(4), one(80)}, "cp852": {one(40), one(81)},
	"cp866": {one(36), one(68)}, "cp932": {{95, 96}}, "dec8": {one(3), one(69)}, "eucjpms": {{97, 98}}, "euckr": {one(19), one(85)}, "gb18030": {{248, 250}},
	"gb2312": {one(24), one(86)}, "gbk": {one(28), one(87)}, "geostd8": {{92, 93}}, "greek": {one(25), one(70)}, "hebrew": {one(16), one(71)}, "hp8": {one(6), one(72)},
	"keybcs2": {one(37), one(73)}, "koi8r": {one(7), one(74)}, "koi8u": {one(22), one(75)}, "latin1": {one(5), one(8), one(15), one(31), {47, 49}, one(94)},
	"latin2": {one(2), one(9), one(21), one(27), one(77)}, "latin5": {one(30), one(78)}, "latin7": {one(20), {41, 42}, one(79)}, "macce": {one(38), one(43)},
	"macroman": {one(39), one(53)}, "sjis": {one(13), one(88)}, "swe7": {one(10), one(82)}, "tis620": {one(18), one(89)}, "ucs2": {one(35), one(90), {128, 159}},
	"ujis": {one(12), one(91)}, "utf16": {{54, 55}, {101, 124}}, "utf16le": {one(56), one(62)}, "utf32": {{60, 61}, {160, 183}},
	"utf8mb3": {one(33), one(76), one(83), {192, 223}}, "utf8mb4": {{45, 46}, {224, 247}, {255, 1023}},
}
