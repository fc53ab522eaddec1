"""The part of JSONata (docs.jsonata.org) that the dashboards use: paths over objects and arrays, object constructors, parentheses,
filters, comparisons, arithmetic, conditions and a few functions. Anything else is an error."""

import re

TOKEN = re.compile(r'\s*(?:(\d+(?:\.\d+)?)|("(?:[^"\\]|\\.)*")|(\$?[A-Za-z_]\w*|\$)|(!=|>=|<=|[-+*/<>=.,:?(){}\[\]]))')
NOTHING = object()  # a value that is not there


def as_list(value):
    return [] if value is NOTHING else value if isinstance(value, list) else [value]


def as_value(items):
    return NOTHING if not items else items[0] if len(items) == 1 else items


def function_sum(value):
    return NOTHING if value is NOTHING else sum(as_list(value))


def function_append(left, right):
    return as_value(as_list(left) + as_list(right))


def function_string(value):
    return NOTHING if value is NOTHING else value if isinstance(value, str) else "%d" % value if value == int(value) else repr(value)


FUNCTIONS = {"$sum": function_sum, "$append": function_append, "$string": function_string,
             "$exists": lambda value: value is not NOTHING}


class Parser:
    """Turns a text into a function of the context."""

    def __init__(self, text):
        self.tokens, place = [], 0
        while text[place:].strip():
            found = TOKEN.match(text, place)
            if not found:
                raise ValueError("unknown text at %r" % text[place:place + 20])
            self.tokens.append(found.group(1) or found.group(2) or found.group(3) or found.group(4))
            place = found.end()
        self.place = 0

    def peek(self):
        return self.tokens[self.place] if self.place < len(self.tokens) else None

    def take(self, expected=None):
        token = self.peek()
        if token is None or (expected and token != expected):
            raise ValueError("expected %s, got %s" % (expected, token))
        self.place += 1
        return token

    def parse(self):
        made = self.condition()
        if self.peek() is not None:
            raise ValueError("unexpected " + self.peek())
        return made

    def condition(self):
        test = self.comparison()
        if self.peek() != "?":
            return test
        self.take()
        yes = self.condition()
        self.take(":")
        no = self.condition()

        def run(context):
            value = test(context)
            return yes(context) if value is not NOTHING and value else no(context)
        return run

    def binary(self, part, operators):
        left = part()
        while self.peek() in operators:
            left = self.applied(operators[self.take()], left, part())
        return left

    @staticmethod
    def applied(operator, left, right):
        def run(context):
            values = left(context), right(context)
            return NOTHING if NOTHING in values else operator(*values)
        return run

    def comparison(self):
        return self.binary(self.addition, {">": lambda a, b: a > b, "<": lambda a, b: a < b, ">=": lambda a, b: a >= b,
                                           "<=": lambda a, b: a <= b, "=": lambda a, b: a == b})

    def addition(self):
        return self.binary(self.product, {"+": lambda a, b: a + b, "-": lambda a, b: a - b})

    def product(self):
        return self.binary(self.path, {"*": lambda a, b: a * b, "/": lambda a, b: a / b})

    def path(self):
        steps = [self.filtered()]
        while self.peek() == ".":
            self.take()
            steps.append(self.filtered())

        def run(context):
            value = steps[0](context)
            for step in steps[1:]:
                items = []
                for item in as_list(value):
                    items += as_list(step(item))
                value = as_value(items)
            return value
        return run

    def filtered(self):
        step = self.primary()
        if self.peek() != "[":
            return step
        self.take()
        test = self.condition()
        self.take("]")
        return lambda context: as_value([item for item in as_list(step(context)) if test(item) is True])

    def primary(self):
        token = self.take()
        if token[0].isdigit():
            number = float(token)
            return lambda context: number
        if token[0] == '"':
            text = token[1:-1]
            return lambda context: text
        if token == "(":
            inner = self.condition()
            self.take(")")
            return inner
        if token == "{":
            return self.constructor()
        if token == "$":
            return lambda context: context
        if token[0] == "$":
            return self.call(token)
        if not (token[0].isalpha() or token[0] == "_"):
            raise ValueError("unexpected " + token)

        def field(context):
            found = [item[token] for item in as_list(context) if isinstance(item, dict) and token in item]
            return as_value([one for value in found for one in as_list(value)])
        return field

    def call(self, name):
        if name not in FUNCTIONS:
            raise ValueError("unknown function " + name)
        self.take("(")
        arguments = [self.condition()]
        while self.peek() == ",":
            self.take()
            arguments.append(self.condition())
        self.take(")")
        return lambda context: FUNCTIONS[name](*(argument(context) for argument in arguments))

    def constructor(self):
        pairs = []
        while self.peek() != "}":
            key = self.take()
            if key[0] != '"':
                raise ValueError("expected a key, got " + key)
            self.take(":")
            pairs.append((key[1:-1], self.condition()))
            if self.peek() == ",":
                self.take()
        self.take("}")

        def run(context):
            values = ((key, value(context)) for key, value in pairs)
            return {key: value for key, value in values if value is not NOTHING}
        return run


def evaluate(text, document):
    value = Parser(text).parse()(document)
    return None if value is NOTHING else value
