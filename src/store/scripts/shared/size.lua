-- How many messages a queue has, before `coming` new ones are added: the number of records, or, where the records would exceed `most`,
-- the number of places in schedules and in flight if that is less. A record without a place, which another program wrote or whose place
-- it deleted, is never delivered, and would fill the queue for ever. Also returns whether the places count.
local function sizeOf(messages, zsets, coming, most)
  local records, places = redis.call('HLEN', messages), 0
  if records + coming <= most then return records, false end
  for _, zset in ipairs(zsets) do
    local here = redis.pcall('ZCARD', zset)
    if type(here) ~= 'number' then return records, false end -- a key of another type may have them
    places = places + here
    if places >= records then return records, false end -- a full queue with its messages in one schedule reads no other
  end
  return places, true
end
