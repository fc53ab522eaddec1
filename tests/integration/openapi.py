"""Checks values against the schemas in the API server's OpenAPI document. Supports only the keywords that the document uses."""

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "number": (int, float), "integer": int}
KNOWN = {"type", "required", "properties", "additionalProperties", "items", "enum", "const", "minimum", "maximum", "pattern",
         "minItems", "maxItems", "description", "example"}


class Document:
    def __init__(self, document):
        self.document = document

    def resolve(self, value):
        while "$ref" in value:
            target = self.document
            for part in value["$ref"].lstrip("#/").split("/"):
                target = target[part]
            value = target
        return value

    def operation(self, path):
        item = self.document["paths"][path]
        return item["get" if "get" in item else "post"]

    def routes(self):
        """The paths of the API itself that take GET, without those of the server."""
        return [path for path, item in self.document["paths"].items() if "servers" not in item and "get" in item]

    def headers(self, path, status):
        """The names, in lower case, of the headers that the response may have."""
        answer = self.resolve(self.operation(path)["responses"][str(status)])
        return {name.lower() for name in answer.get("headers", {})}

    def complaint(self, schema, value):
        """Why the value does not match the schema, or None."""
        schema = self.resolve(schema)
        if unknown := set(schema) - KNOWN:
            return "unknown keywords %s" % unknown
        if "type" in schema:
            names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            if not any(isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool)) for name in names):
                return "%r is not a %s" % (value, names)
        if "const" in schema and schema["const"] != value:
            return "%r is not %r" % (value, schema["const"])
        if "enum" in schema and value not in schema["enum"]:
            return "%r is not one of %r" % (value, schema["enum"])
        if isinstance(value, list):
            for item in value:
                if why := self.complaint(schema.get("items", {}), item):
                    return why
        if isinstance(value, dict):
            return self.object_complaint(schema, value)
        return None

    def object_complaint(self, schema, value):
        if missing := set(schema.get("required", [])) - set(value):
            return "%r lacks %s" % (value, missing)
        for name, member in value.items():
            more = schema.get("additionalProperties", True)
            if name in schema.get("properties", {}):
                why = self.complaint(schema["properties"][name], member)
            else:
                why = "unknown member " + name if more is False else self.complaint(more if more is not True else {}, member)
            if why:
                return name + ": " + why
        return None

    def answer_complaint(self, path, status, body):
        """The same for the body of a response, which is JSON."""
        responses = self.operation(path)["responses"]
        if str(status) not in responses:
            return "status %d is not documented" % status
        return self.complaint(self.resolve(responses[str(status)])["content"]["application/json"]["schema"], body)
