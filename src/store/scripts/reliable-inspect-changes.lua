-- Examine the last entries of the change stream, without decoding them.
--
-- KEYS[1] changes  stream  the queue's changes
--
-- ARGV[1] count  integer  the number of entries
--
-- returns {how many were examined, how many of them no script has written}
local foreign = 0
local entries = redis.call('XREVRANGE', KEYS.changes, '+', '-', 'COUNT', ARGV.count)
for _, entry in ipairs(entries) do
  local fields = entry[2]
  local isOurs = #fields == 2 and fields[1] == 'changes' and string.find(string.sub(fields[2], 1, 200), '^[%w_-]+ [%w_-]+\n')
  if not isOurs then foreign = foreign + 1 end
end
return {#entries, foreign}
