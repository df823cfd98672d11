"""The vocabulary: what the offline model knows of Chinese and English.

One table tells what a word means, and the question is read by it once. A word that
means something is later either used in the plan or named in the answer; a word without
meaning here (MEANS_NOTHING) is passed over.
"""

from __future__ import annotations

import re
from typing import NamedTuple

HAN = r"[\u4e00-\u9fff]"
KINDS = ("weather", "price")  # of things to look up


class Unit(NamedTuple):
    """How a unit is written: by the user (patterns), and in the answer."""

    quantity: str
    read: str
    read_chinese: str
    chinese: str
    one: str
    many: str


_DEGREE = r"(?:° ?|degrees? )?"
UNITS = {
    "km": Unit("length", r"km|kilomet(?:er|re)s?", "公里|千米", "公里", "km", "km"),
    "m": Unit("length", r"(?<=\d) ?m|met(?:er|re)s?", "米", "米", "m", "m"),
    "mile": Unit("length", r"miles?|mi", "英里", "英里", "mile", "miles"),
    "foot": Unit("length", r"foot|feet|ft", "英尺", "英尺", "foot", "feet"),
    "kg": Unit("mass", r"kgs?|kilograms?|kilos?", "公斤|千克", "公斤", "kg", "kg"),
    "g": Unit("mass", r"(?<=\d) ?g|grams?", "克", "克", "g", "g"),
    "lb": Unit("mass", r"lbs?|pounds?", "磅", "磅", "lb", "lb"),
    "celsius": Unit(
        "heat", rf"{_DEGREE}(?:celsius|centigrade|C)", "摄氏度?", *["°C"] * 3
    ),
    "fahrenheit": Unit("heat", rf"{_DEGREE}(?:fahrenheit|F)", "华氏度?", *["°F"] * 3),
}
MONEY = {"HKD": "港元（HKD）", "USD": "美元（USD）"}  # in a Chinese answer


def same_quantity(one: str, other: str) -> bool:
    """Whether one of the units can be converted into the other."""
    return UNITS[one].quantity == UNITS[other].quantity


class Degree(NamedTuple):
    """A word that compares: how it is read in Chinese, in English and in English where
    it compares by itself, and how it is answered."""

    kinds: str
    read_chinese: str
    read: str
    read_more: str
    chinese: str
    more: str
    most: str
    lowest: str = ""


DEGREES = {
    key: Degree(*columns)
    for key, *columns in (
        row.split(" | ")
        for row in """
warm | weather | 暖和? | warm | warm(?:er|est) | 暖和 | warmer | the warmest
hot | weather | 热 | hot | hott(?:er|est) | 热 | hotter | the hottest
cold | weather | 冷 | cold | cold(?:er|est) | 冷 | colder | the coldest | lowest
cool | weather | 凉快? | cool | cool(?:er|est) | 凉快 | cooler | the coolest | lowest
worth | price | 值钱 | valuable | (?:worth|most|more) (?:the )?(?:most|more|valuable) | 值钱 | worth more | worth the most
dear | price | 贵(?!州) | expensive | (?:more|most) expensive | 贵 | more expensive | the most expensive
cheap | price | 便宜 | cheap | cheap(?:er|est)|less expensive | 便宜 | cheaper | the cheapest | lowest
high | - | 高 | high | high(?:er|est) | 高 | higher | the highest
low | - | 低 | low | low(?:er|est) | 低 | lower | the lowest | lowest
""".strip().splitlines()  # noqa: E501
    )
}
USUAL_DEGREE = {"weather": "warm", "price": "dear"}
LAST_DEGREE = "(?<=[高低贵热冷暖凉宜快和])"

MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
DATE = r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}/\d{1,2}/\d{4}"
COUNT = r"(?:\d+|[一两二三四五六七八九十半几]+)"

# What a word means (several meanings for some), in Chinese, in English. The first that
# fits at a place counts.
MEANINGS: list[tuple[str, str, str]] = [
    (
        "not-now",
        rf"{DATE}|\d+ ?年(?: ?\d+ ?月)?(?: ?\d+ ?[日号])?|\d+ ?月(?: ?\d+ ?[日号])?"
        r"|大?[明昨后前]天|明[日早晚年]|昨[日晚]|去年|今[年晚夜]|周末|[早晚]上|[上下]午|中午"
        r"|凌晨|[下上]个?(?:周|星期|礼拜|月)[一二三四五六日天]?|(?:周|星期|礼拜)[一二三四五六日天]"
        rf"|{COUNT} ?(?:个?小时|分钟|天|个?月|个?星期|周|年)[之以]?[后前内]"
        r"|未来|预报|历史"
        r"|(?<![%股])(?<![%股] )以后|以前|昨|收盘价?|开盘价?",
        r"tomorrow|yesterday|tonight|forecast|will|going to|later|ago|soon|weekend"
        rf"|morning|afternoon|evening|noon|midnight|(?:on )?{DAY}"
        rf"|{MONTH} \d+(?:st|nd|rd|th)?"
        rf"(?:,? \d{{4}})?|(?:next|last|past|coming) "
        r"(?:week|month|year|night|summer|winter"
        rf"|\w+ (?:days|weeks|months|years)"
        rf"|{DAY})|(?:in|since|of) (?:19|20)\d\d"
        r"|(?:in )?(?:\d+|an?|one|two|few) (?:hour|minute|day|week|month|year)s?"
        r"(?: ago| later| from now)?|used to|was|closing|opening",
    ),
    (
        "no-tool",  # operations and units that no tool has
        r"的?平方根|的?立方根|开方|根号|阶乘|对数|余数|取余|取整|四舍五入|中位数|方差|标准差|排序|排名"
        r"|比例|比值|占比|方程|质数|汇率|市盈率|欧元|日元|英镑|韩元|厘米|毫米|英寸|盎司|加仑"
        r"|小时|分钟|[平立]方[公英]?[里米尺]|(?<=[\d少几]) ?[斤吨升秒码亩里尺寸]"
        r"|[斤吨](?=等|是|多)"
        r"|开尔文",
        r"(?:square |cube )?roots?|sqrt|factorial|log(?:arithm)?|mod(?:ulo)?|remainder"
        r"|round(?:ed)?(?: to)?|median|variance|deviation|ratio|rank(?:ed)?"
        r"|sort(?:ed)?|prime"
        r"|solve|exchange rate|euros?|EUR|yen|JPY|GBP|cm|mm|centimet(?:er|re)s?"
        r"|inch(?:es)?"
        r"|yards?|ounces?|oz|tonnes?|tons?|lit(?:er|re)s?|gallons?|hours?|minutes?|seconds?"
        r"|mph|m/s|knots?|kelvin|GB|MB|acres?|stones?",
    ),
    ("money HKD", "港[元币]", "HKD|hong kong dollars?"),
    ("money USD", "美[元金]", "USD|us dollars?"),
    ("money CNY", "人民币", "CNY|RMB|yuan"),
    ("money HKD USD", "", "dollars?"),
    *((f"unit {key}", unit.read_chinese, unit.read) for key, unit in UNITS.items()),
    (
        "time",
        r"(?:现在|当前|什么)?的?时间|几点钟?|星期几|周几|礼拜几|几号|日期|什么时候了",
        r"what time(?: is it)?|(?:current |local )time|(?<=the )time"
        r"|(?<![a-z] )time(?= in)"
        r"|time (?:is it|now)|(?:what|which) (?:week)?day(?: of the week)?(?: is it)?"
        r"|date|day is (?:it|today)",
    ),
    (  # the time of another place, which no tool knows
        "elsewhere",
        "(?:那里|那边|当地)(?=的?(?:时间|现在|几点))",
        "(?<=time is it )(?:over )?there",
    ),
    (
        "intro",
        r"介绍一?下?(?:你自己|你|自己)|自我介绍|你是谁|你是什么|你能做|你会[做什]|你可以做",
        r"who are you|what are you|introduce yourself|about yourself|what can you do"
        r"|are you (?:a |an )?(?:real|human|language|ai|bot|robot|model|llm)",
    ),
    ("weather difference", "温差", ""),
    ("price difference", "价差|差价", ""),
    (
        "difference",
        rf"相差(?:多少)?(?:度|钱)?|差多少|差距|之差|{LAST_DEGREE}(?:多少|几)度?|相差",
        r"difference|by how (?:much|many)(?: degrees)?"
        r"|how (?:much|many degrees)"
        r"(?= (?:(?:warm|cold|hott|cool|cheap|high|low)er|more))",
    ),
    ("average", "平均[值数]?", "average|mean"),
    (
        "sum",
        "加起来|加在一起|之和|总和|的和|一共|总共|合计|总(?=市值|价|值)",
        "sum|total|altogether|add(?:ed)? up|together|combined",
    ),
    ("add", "", "add"),
    ("subtract", "", "subtract"),
    ("multiply", "", "multiply"),
    ("divide", "", "divide"),
    ("sign **", r"\*\*|\^", "to the power of"),
    ("sign //", "//", ""),
    ("sign *", r"乘以?|\*", r"times|multiplied by|(?<=[\d)]) ?x(?= ?[\d(])"),
    ("sign /", "除以|/", r"divided by|over(?= \d)"),
    ("sign +", r"加上?|\+", "plus"),
    ("sign -", "减去?|零下|-", r"minus|less(?= \d)"),
    ("sign %", "%", ""),
    ("square", "的?平方(?![根公英里米])", "squared"),
    ("power", "次方", ""),
    ("fold", "倍", "fold"),
    ("double", "翻[倍番]|两倍", "double[sd]?|twice"),
    ("half", "一半", "half|halve[sd]?"),
    ("rise", "上?涨[了到]?", "ris(?:es?|ing)|increases?|goes up|up|gains?"),
    ("fall", "下?跌[了到]?", "falls?|drops?|goes down|down|loses?"),
    *(
        (f"{d.kinds} compare degree {key}", "", d.read_more)
        for key, d in DEGREES.items()
    ),
    *(
        (f"{d.kinds} degree {key}", d.read_chinese, d.read)
        for key, d in DEGREES.items()
    ),
    (
        "compare",
        "更|最(?![近新后])|比(?![如])较?|对比",
        "than|compared?|(?:more|most|less)",
    ),
    (  # told with the weather, but nothing is compared or calculated by them
        "weather topic detail",
        "湿度?|刮风|风速|下?(?:雷?阵)?[雨雪]|雨伞|带伞",
        r"humid(?:ity)?|wind(?:y|s)?|rain(?:ing|y|s)?|umbrella|snow(?:ing|y|s)?|sunny",
    ),
    (
        "weather topic",
        "天气|气温|温度|多少度|几度",
        "weather|temperatures?|how many degrees",
    ),
    ("unit degree", "度|°", "degrees?"),
    (
        "price topic stock",
        "股价|股票|股份",
        "stocks?(?: prices?)?|share prices?|quotes?",
    ),
    ("price topic", "价格|报价|市价|市值", "prices?|market value|trading at"),
    ("price", "多少钱|价值|值多少钱?|值", "worth|values?|how much|costs?|pay"),
    ("share stock", "股", "shares?"),
    ("which", "哪[个里座家只边一]?|谁", "which|who"),
    ("link many", "多少|几(?!乎)", "how many"),
    ("link", "(?:转换|换算|换|转)[成为]?|[成为按]|等于", "in|into|to|as|is|equals?|="),
    (
        "before",
        "[它这那](?![里边])个?|刚才|刚刚|上面|结果|之前",
        "it|its|they|them|their|that|this|those|last|result|just mentioned|mentioned"
        "|earlier|previous|you (?:just )?said",
    ),
    ("again", "呢", r"how about|what about|(?:^|(?<=[?.!] ))and"),
    ("end", r"[?!。;\n]+|\.(?=\s|$)", ""),
    (
        "comma",
        r":|,(?: ?(?:and|then|but|or)\b)?|以及|还有|然后|另外|此外|顺便|并且?",
        "but|then",
    ),
    ("list", "、|和|与|跟|及|还是|或者?", "and|or|vs"),
    ("(", r"\(", ""),
    (")", r"\)", ""),
]
MEANS_NOTHING = (
    r"每?一股|每股|请问|请?告诉|帮我|麻烦|[你您]好|想|知道|查询?|一下|看看?|现在|今[天日]|目前|当前"
    r"|此[刻时]|那么|分别|各自|持有|买了?|如[果何]|最新|最近|怎么样?|什么|[这那]里|外面|计算|大概|可以"
    r"|[这那两二三]?(?:个?城市|家?公司|个?地方|者|个)|[以之]?后"
    r"|[你我的在是与问给把被了吗么呀啊吧会有要用再也还都各就能那今市里算好每元块请地]",
    r"(?:of )?(?:the|these|those|them) two|how far is (?:it|that)"
    r"|a|an|the|what|how|is|are|be"
    r"|if|of|for|at|on|i|m"
    r"|my|me|our|we|us|you|your|his|her|do|does|did|would|could|can|should|have|has|own"
    r"|hold|holdings?|buy|bought|sell|please|tell|show|give|take|go|get|find|check|see|compute"
    r"|calculate|evaluate|convert|now|today|right|currently|current|latest|like|there"
    r"|here|outside|also|too|with|by|from|between|both|each|one|same|s|re|ll|hello|hi|hey|so"
    r"|just|only|city|company|instead|want|know|need|left|let|and|any|some|much|answer|when|were",
)
HELLO = re.compile(
    r"^\W*(?:[你您]好|早上好|晚上好|嗨|(?:hello|hi|hey|good (?:morning|evening))\b)",
    re.I,
)
THANKS = re.compile(r"谢谢|多谢|感谢|\bthank|再见|\bbye", re.I)
