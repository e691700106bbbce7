"""What is elsewhere and goes away: the database's server, and the network to a provider."""

from engines import Postgres
from fault import Fault
from relay import Relay
from server import Server


class DatabaseServerGone(Fault):
    """PostgreSQL is killed, and started again."""

    cause = r"(?i)database|unhealthy"

    def set_up(self, stack):
        self.postgres = stack.enter_context(Postgres())
        return stack.enter_context(self.make_server(variables={"DATABASE_URL": self.postgres.url}))

    def inject(self, verb):
        self.postgres.kill()

    def heal(self, verb):
        self.postgres.start()


class ProviderCutOff(Fault):
    """A second server plays E2B's cloud; the network to it is cut, with what was connected, and comes back."""


    def set_up(self, stack):
        cloud = stack.enter_context(Server("--ready", "0"))
        self.relay = stack.enter_context(Relay(cloud.e2b_port))
        variables = {
            "E2B_API_KEY": cloud.admin_key,
            "E2B_API_URL": self.relay.url,
            "E2B_SANDBOX_URL": self.relay.url,
            "SANDBOX_PROVIDER": "e2b",
        }
        return stack.enter_context(self.make_server(variables=variables, is_degraded=True))

    def inject(self, verb):
        self.relay.cut()

    def heal(self, verb):
        self.relay.join()
