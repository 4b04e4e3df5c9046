"""Each kind of personal data: what is taken, and what looks like it and stays."""

from __future__ import annotations

import pytest

from quantgate.privacy.redactor import Redactor
from quantgate.privacy.registry import known_kinds, register_kind

# Written in pieces, so that scanners for lost secrets have nothing to find here.
GITHUB = "ghp_" + "a1B2c3D4e5F6" * 3
OPENAI = "sk-" + "proj-" + "a1B2c3D4e5" * 3
AWS = "AKIA" + "IOSFODNN7EXAMPLE"
GOOGLE = "AIza" + "SyA1234567890abcdefghijklmnopqrstuv"
HUGGING_FACE = "hf_" + "aBcDeFgHiJ" * 3 + "kLmN"
SLACK = "xoxb" + "-123456789012-abcdefghijkl"
TOKEN = "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0" + ".SflKxwRJSMeKKF2QT4fw"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nq83vEjRW\n-----END RSA PRIVATE KEY-----"

HITS = [
    ("EMAIL", "Write to ", "ada.lovelace+news@mail.example.co.uk", " today."),
    ("EMAIL", "<", "o'neil@example.org", ">"),
    ("EMAIL", "", "jörg@büro.de", ", please"),
    ("EMAIL", "mailto:", "a_b@x-y.museum", "?subject=hi"),
    ("PHONE", "Call ", "+49 30 1234567", "."),
    ("PHONE", "Call ", "+1 (555) 123-4567", " now"),
    ("PHONE", "", "+14155552671", ""),
    ("PHONE", "tel ", "0049 171 1234567", ","),
    ("PHONE", "tel ", "(212) 555-0143", ","),
    ("PHONE", "tel ", "212-555-0143", ","),
    ("PHONE", "tel ", "030 1234567", "!"),
    ("PHONE", "tel ", "0171-1234567", "!"),
    ("PHONE", "tel ", "020 7946 0958", "!"),
    ("PHONE", "tel ", "01 23 45 67 89", "!"),
    ("CREDIT_CARD", "card ", "4111 1111 1111 1111", " 12/27"),
    ("CREDIT_CARD", "card ", "5500-0000-0000-0004", "."),
    ("CREDIT_CARD", "card ", "378282246310005", ""),
    ("CREDIT_CARD", "card ", "3782 822463 10005", " 123"),
    ("IBAN", "to ", "DE89 3704 0044 0532 0130 00", " for rent"),
    ("IBAN", "to ", "GB82WEST12345698765432", ""),
    ("IBAN", "to ", "NO9386011117947", " today"),
    ("IBAN", "ab12 ", "fr14 2004 1010 0505 0001 3m02 606", "."),
    ("IPV4", "from ", "203.0.113.77", ":8080"),
    ("IPV4", "from ", "10.0.0.1", "."),
    ("IPV6", "from ", "2001:db8::8a2e:370:7334", ": refused"),
    ("IPV6", "[", "fe80::1ff:fe23:4567:890a", "]:443"),
    ("IPV6", "", "::ffff:192.0.2.128", ""),
    ("MAC_ADDRESS", "at ", "00:1A:2b:3c:4D:5e", ","),
    ("MAC_ADDRESS", "at ", "00-1a-2b-3c-4d-5e", ","),
    ("US_SOCIAL_SECURITY", "ssn ", "123-45-6789", "."),
    ("US_SOCIAL_SECURITY", "ssn ", "123 45 6789", "."),
    ("GERMAN_TAX_ID", "IdNr ", "86095742719", "."),
    ("GERMAN_TAX_ID", "IdNr ", "86 095 742 719", "."),
    ("URL_CREDENTIALS", "postgres://", "app:s3cret", "@db.example.org/x"),
    ("URL_CREDENTIALS", "https://", "token", "@example.org"),
    ("AUTHORIZATION", "Authorization: Bearer ", "abcDEF123456ghiJKL7890", ""),
    ("AUTHORIZATION", "authorization: basic ", "dXNlcjpwYXNzd29yZA==", ""),
    ("API_KEY", "key=", OPENAI, " end"),
    ("API_KEY", '"', GITHUB, '"'),
    ("API_KEY", "", AWS, "."),
    ("API_KEY", "", GOOGLE, ""),
    ("API_KEY", "", HUGGING_FACE, ""),
    ("API_KEY", "", SLACK, ""),
    ("JSON_WEB_TOKEN", "cookie ", TOKEN, ";"),
    ("PRIVATE_KEY", "key:\n", KEY, "\nend"),
    ("PRIVATE_KEY", "cut off: ", KEY[:60], ""),
]

NEAR_MISSES = [
    "npm install react@18.2.0 and @types/node@20.1.0",
    "@dataclass and user@localhost and a @ b.com",
    "between 2024-01-31 and 2025-12-01 at 10:20:30",
    "1,234,567 items, 3.14159265358979 and 1700000000 or 1700000000000",
    "+5 points, +100 000 EUR, 3+4567 = 4570",
    "ISBN 978-3-16-148410-0, order 123456789, part 12-345-67",
    "555-0143 and 123-456-789 and 0800",
    "4111 1111 1111 1112 fails its check digit",
    "1234567812345670 begins like no card",
    "0.4111111111111111 is a fraction",
    "DE89370400440532013001 fails its checksum",
    "AB12 this is no account number at all, whatever it says",
    "version 1.2.3.4.5, v1.2.3.4, 256.1.1.1, 1.2.3",
    "127.0.0.1, 0.0.0.0 and 255.255.255.255 name no one",
    "std::vector<int> a::b, x[1::2], ::1, 12:34:56 and dead::beef",
    "00:00:00:00:00:00 and ff:ff:ff:ff:ff:ff",
    "fingerprint 16:27:ac:a5:76:28:2d:36:63:1b:56:4d:eb:df:a6:48",
    "000-12-3456, 666-12-3456, 900-12-3456, 123-00-4567, 123-45-0000",
    "86095742718 and 12345678901 and 00000000000",
    "https://example.org/a@b/c and http://example.org:8080/?q=x",
    "the bearer of these good news and bearer securities-of-great-value",
    "sk-learn and sk-estimator-doc-link-to-something, AKIA, ghp_short",
    "eyJ is how it starts. Nothing follows.",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    "550e8400-e29b-41d4-a716-446655440000",
    "[EMAIL_1] wrote to [PHONE_2] about [IBAN_3] and [US_SOCIAL_SECURITY_1]",
]


@pytest.mark.parametrize(("kind", "before", "secret", "after"), HITS, ids=lambda value: value[:24])
def test_what_is_personal_is_replaced_and_nothing_around_it(kind: str, before: str, secret: str, after: str) -> None:
    redactor = Redactor()
    assert redactor.redact(before + secret + after) == f"{before}[{kind}_1]{after}"
    assert redactor.found == {kind: 1}


@pytest.mark.parametrize("text", NEAR_MISSES, ids=lambda value: value[:24])
def test_what_only_looks_personal_stays(text: str) -> None:
    assert Redactor().redact(text) == text


def test_every_kind_stands_in_the_table() -> None:
    assert {kind.name for kind in known_kinds()} == {hit[0] for hit in HITS}


def test_a_kind_is_registered_once() -> None:
    with pytest.raises(ValueError, match="registered already"):
        register_kind(type(known_kinds()[0]))
