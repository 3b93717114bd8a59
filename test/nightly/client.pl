# Calls one operation through the client that OpenAPI::Client generates from the service's document.
# Arguments: URL of the service, operation. Input and output are JSON: parameters and headers; status, headers and body.
use strict;
use warnings;
use Mojo::JSON qw(decode_json encode_json);
use OpenAPI::Client;

my ($url, $operation) = @ARGV;
my $input = decode_json(do { local $/; <STDIN> });
my $client = OpenAPI::Client->new("$url/openapi.json");
$client->on(after_build_tx => sub {
  my ($self, $tx) = @_;
  $tx->req->headers->header($_ => $input->{headers}{$_}) for keys %{$input->{headers}};
});
my $tx = $client->$operation($input->{parameters});
my $headers = {map { lc($_) => $tx->res->headers->header($_) } @{$tx->res->headers->names}};
print encode_json({status => 0 + $tx->res->code, headers => $headers, body => $tx->res->json});
