// oauth2-mock-server as its manual starts it. Argument: the port.
import { OAuth2Server } from 'oauth2-mock-server'

const server = new OAuth2Server()
await server.issuer.keys.generate('RS256')
await server.start(Number(process.argv[2]), 'localhost')
