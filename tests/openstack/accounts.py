"""Gives Keystone the services and the accounts that they use for each other. Runs in the root file system of the cloud.

Usage: accounts.py URL NAME=TYPE=URL..."""

import sys

from keystoneauth1 import session
from keystoneauth1.identity import v3

client = session.Session(v3.Password(auth_url=sys.argv[1], username="admin", password="secret", project_name="admin",
                                     user_domain_id="default", project_domain_id="default"), connect_retries=20)
IDENTITY = {"interface": "public", "service_type": "identity", "region_name": "RegionOne"}


def create(kind, **fields):
    return client.post("/%ss" % kind, json={kind: fields}, endpoint_filter=IDENTITY).json()[kind]["id"]


roles = {role["name"]: role["id"] for role in client.get("/roles", endpoint_filter=IDENTITY).json()["roles"]}
project = create("project", name="service", domain_id="default")
for name in ("nova", "placement"):
    user = create("user", name=name, password="secret", domain_id="default")
    client.put("/projects/%s/users/%s/roles/%s" % (project, user, roles["admin"]), endpoint_filter=IDENTITY)
for text in sys.argv[2:]:
    name, kind, url = text.split("=", 2)
    service = create("service", name=name, type=kind)
    for interface in ("public", "internal", "admin"):
        create("endpoint", service_id=service, interface=interface, region_id="RegionOne", url=url)
