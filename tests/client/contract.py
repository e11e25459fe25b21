"""What GET /openapi.json promises, held against every answer that a test gets through server.py or stream.py.

An answer must have a documented status, media type and shape; a field that is not documented is as wrong as one that is
missing, since schemas of answers are closed here.
"""

import http.client
import json
import re

import jsonschema
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

HERE = "urn:openapi"


def escaped(name):
    return name.replace("~", "~0").replace("/", "~1")


def closed(schema):
    """The same, with every object that lists its properties allowing no others."""
    if isinstance(schema, list):
        return [closed(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: inner if key == "if" else closed(inner) for key, inner in schema.items()}
    if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema:
        made["additionalProperties"] = False
    return made


class Contract:
    def __init__(self, document):
        self.document = document
        whole = Resource.from_contents(closed(document), default_specification=DRAFT202012)
        self._registry = Registry().with_resource(HERE, whole)
        self._validators = {}
        self.seen = set()  # (operationId, status, media type or None)
        self.calls = []    # (method, path template, operation)
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                self.calls.append((method.upper(), path, operation))
        # A word in a path wins over what any segment fits; a model's name may have slashes.
        self._patterns = [(re.compile(re.sub(r"\{(\w+)\}", lambda m: ".+" if m[1] == "model" else "[^/]+", path)), path)
                          for path in sorted(document["paths"], key=lambda path: path.count("{"))]

    def schema(self, name):
        """A validator of a component, closed."""
        return self.validator(f"components/schemas/{name}")

    def validator(self, pointer):
        if pointer not in self._validators:
            self._validators[pointer] = jsonschema.Draft202012Validator({"$ref": f"{HERE}#/{pointer}"},
                                                                        registry=self._registry)
        return self._validators[pointer]

    def path_of(self, target):
        path = target.split("?")[0]
        return next((template for pattern, template in self._patterns if pattern.fullmatch(path)), None)

    def operation(self, method, target):
        """(operation, its pointer) or (None, None)."""
        path = self.path_of(target)
        methods = self.document["paths"].get(path, {})
        verb = "get" if method == "HEAD" else method.lower()
        return (methods[verb], f"paths/{escaped(path)}/{verb}") if verb in methods else (None, None)

    def response(self, method, target, status):
        """(documented response, its pointer)."""
        operation, pointer = self.operation(method, target)
        responses = operation["responses"]
        assert str(status) in responses, f"{method} {target}: status {status} is not documented"
        found = responses[str(status)]
        if "$ref" in found:
            pointer = found["$ref"].removeprefix("#/")
            return self.document["components"]["responses"][pointer.split("/")[-1]], pointer
        return found, f"{pointer}/responses/{status}"

    def fits(self, validator, value, what):
        wrong = jsonschema.exceptions.best_match(validator.iter_errors(value))
        assert wrong is None, f"{what}: {wrong.message} at {wrong.json_path}\n{json.dumps(value)[:1000]}"

    def check_head(self, method, target, status, headers):
        """Of an answer whose body comes later; returns a function that checks the data of an event."""
        response, pointer = self.response(method, target, status)
        media = (headers.get("content-type") or "").split(";")[0] or None
        assert (media in response["content"]) if "content" in response else media is None, f"{method} {target}: {media}"
        for name, header in response.get("headers", {}).items():
            if "$ref" in header:
                header = self.document["components"]["headers"][header["$ref"].split("/")[-1]]
            assert not header.get("required") or headers.get(name), f"{method} {target}: no header {name}"
            if headers.get(name):
                self.fits(jsonschema.Draft202012Validator(header["schema"]), headers[name], f"{method} {target}: {name}")
        self.seen.add((self.operation(method, target)[0]["operationId"], status, media))
        if media is None:
            return None
        validator = self.validator(f"{pointer}/content/{escaped(media)}/schema")

        def check(value):
            self.fits(validator, value, f"{method} {target} {status} {media}")
            if codes := response.get("x-codes"):
                assert value["error"]["code"] in codes, f"{method} {target}: {status} with {value['error']['code']}"
        check.fine = set()
        return check

    def check(self, method, target, status, headers, body):
        """Of a whole answer."""
        if self.operation(method, target)[0] is None:
            if method == "OPTIONS" and status == 204:
                return
            expected = (400, 401, 403, 405, 421, 431) if self.path_of(target) else (400, 401, 403, 404, 421, 431)
            assert status in expected, f"{method} {target} is not documented and answers {status}"
            self.fits(self.schema("ErrorAnswer"), json.loads(body), f"{method} {target}")
            return
        check = self.check_head(method, target, status, headers)
        if check is None:
            assert body == b"", f"{method} {target}: {status} has a body"
        elif method != "HEAD" and headers["content-type"].startswith("text/event-stream"):
            for event in body.decode().split("\n\n"):
                fields = [line.split(": ", 1) for line in event.split("\n") if line and not line.startswith(":")]
                if fields:
                    check_event(check, dict(fields))
        elif method != "HEAD":
            check(body.decode() if headers["content-type"].startswith("text/plain") else json.loads(body))


BYTE = r"(?:\d{1,2}|1\d\d|2[0-4]\d|25[0-5])"
# What chunks of one stream differ in, and is equally right to a schema: any text, any negative number, any bytes.
ALIKE = ((re.compile(r'"(content|text|token|reasoning_content)":"(?:[^"\\]|\\.)*"'), r'"\1":""'),
         (re.compile(r'"logprob":-\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?=[,}])'), '"logprob":-1'),
         (re.compile(rf'"bytes":\[(?:{BYTE}(?:,{BYTE})*)?\]'), '"bytes":[]'))


def check_event(check, fields):
    """Of server-sent events: the data, and that its type is that of the event. Chunks that are alike are looked at once."""
    data = fields["data"]
    value = data if data == "[DONE]" else json.loads(data)
    if "event" in fields:
        assert fields["event"] == value["type"]
        return check(value)
    chunk = data
    for pattern, one in ALIKE:
        chunk = pattern.sub(one, chunk)
    if chunk not in check.fine:
        check(value)
        check.fine.add(chunk)


_contracts = {}


def contract(server):
    """The one of this program; asked for once: of this server, or where that wants a key or still loads, of another."""
    if not _contracts:
        connection = http.client.HTTPConnection(server.host, server.port, timeout=30)
        connection.request("GET", "/openapi.json")
        answer = connection.getresponse()
        said = answer.read()
        connection.close()
        if answer.status in (401, 503):
            from server import serving  # which imports this

            with serving("--engine", "fake") as open_to_all:
                return contract(open_to_all)
        assert answer.status == 200, said
        _contracts[None] = Contract(json.loads(said))
    return _contracts[None]
