"""ceems-site.rules.yml: what the site knows and the exporters do not."""

from . import Group, Record


def groups(settings):
    rules = [Record("ceems:pue", "vector(%g)" % settings.pue, comment=(
        "Power usage effectiveness. The watts and grams of ceems-compat.rules.yml are multiplied by it. It may also be a query, such as "
        "max(facility_pue)."))]
    for country in settings.countries or ("FR",):
        rules.append(Record("ceems:country", "vector(1)", labels={"country_code": country}, comment=(
            "Country, or zone of a provider, whose emission factors count. One record for each code that a provider uses.")))
    return [Group("ceems-site", rules=rules, interval="1m")]
