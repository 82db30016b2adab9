-- Move elements from the left end of a list to the right end of another, in their order.
-- It pushes to the other list first, so that an error leaves everything unchanged.
--
-- KEYS[1] source  list  elements ready to be taken
-- KEYS[2] target  list  the list that gets them
--
-- ARGV[1] count    integer  most elements to move
-- ARGV[2] exactly  flag     move nothing when there are fewer
--
-- returns the elements that were moved
local source, target, count = KEYS.source, KEYS.target, tonumber(ARGV.count)
if ARGV.exactly == '1' and redis.call('LLEN', source) < count then return {} end
local elements = redis.call('LRANGE', source, 0, count - 1)
if #elements == 0 then return elements end
redis.call('RPUSH', target, unpack(elements))
redis.call('LTRIM', source, #elements, -1)
return elements
