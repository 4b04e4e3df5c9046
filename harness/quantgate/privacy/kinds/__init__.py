"""Importing this package registers every kind.

The order matters where one kind's text holds another's: a key block holds anything, a URL's password may look like an
address, a card number like a telephone number.
"""

from __future__ import annotations

# isort: off
from quantgate.privacy.kinds import private_key as private_key
from quantgate.privacy.kinds import json_web_token as json_web_token
from quantgate.privacy.kinds import api_key as api_key
from quantgate.privacy.kinds import authorization as authorization
from quantgate.privacy.kinds import url_credentials as url_credentials
from quantgate.privacy.kinds import email as email
from quantgate.privacy.kinds import iban as iban
from quantgate.privacy.kinds import credit_card as credit_card
from quantgate.privacy.kinds import mac_address as mac_address
from quantgate.privacy.kinds import ipv6 as ipv6
from quantgate.privacy.kinds import ipv4 as ipv4
from quantgate.privacy.kinds import us_social_security as us_social_security
from quantgate.privacy.kinds import german_tax_id as german_tax_id
from quantgate.privacy.kinds import phone as phone
# isort: on
