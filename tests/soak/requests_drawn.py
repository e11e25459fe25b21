"""The requests of a soak: each the same whenever it is asked, of many kinds."""

import dataclasses

WORDS = ("the river", "a machine", "seven letters", "why snow is white", "an old harbour", "two sisters", "the last train",
         "how bread is made", "a map", "the colour of rust")
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "n": {"type": "integer"},
                                           "tags": {"type": "array", "items": {"type": "string", "maxLength": 8}, "maxItems": 3}},
          "required": ["name", "n", "tags"]}
SAMPLING = (
    {"temperature": 0},
    {"temperature": 0.9, "top_p": 0.95},
    {"temperature": 1.1, "repeat_penalty": 1.3, "dry_multiplier": 0.8},
    {"mirostat": 2},
    {"temperature": 0.8, "xtc_probability": 0.3, "min_p": 0.02},
)


@dataclasses.dataclass
class Drawn:
    path: str
    body: dict

    @property
    def is_chat(self):
        return "chat" in self.path


def draw_requests(chance, n):
    drawn = []
    for i in range(n):
        body = {"seed": chance.getrandbits(32), "max_tokens": chance.choice((8, 30, 60, 120)), **chance.choice(SAMPLING)}
        about = f"{i}: tell me about {chance.choice(WORDS)} and {chance.choice(WORDS)}. " * chance.choice((1, 1, 4, 40))
        kind = chance.randrange(5)
        if kind == 0:
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
        elif kind == 1:
            body["stop"] = ["\n\n", " and then"]
        elif kind == 2:
            body["logprobs"], body["top_logprobs"] = True, 2
        if kind == 3:
            drawn.append(Drawn("/v1/completions", {**body, "prompt": about}))
        else:
            drawn.append(Drawn("/v1/chat/completions", {**body, "messages": [{"role": "user", "content": about}]}))
    return drawn
