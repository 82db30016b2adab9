-- Examine the buckets of some minutes in a row, also of those that the wheel lacks, or to which another program gave a later time than that
-- of their promotion.
--
-- KEYS[1] wheel  zset  minute of a bucket -> when the bucket is promoted, epoch ms
--
-- ARGV[1] from     integer  the first minute
-- ARGV[2] count    integer  how many minutes
-- ARGV[3] restore  flag     whether to put into the wheel what it lacks, with its time
--
-- returns {buckets that the wheel lacked or has too late, {for each key of a bucket that expires two: the key, in how many ms}, {keys of
--   buckets that are no lists}, {keys of their cancelled ids that are no sets}}
local wheel, from, count = KEYS.wheel, tonumber(ARGV.from), tonumber(ARGV.count)

-- include shared/wheel.lua

local lacking, expiring, noLists, noSets, buckets = 0, {}, {}, {}, {}
for n = 1, count do buckets[n] = wheelKey(wheel, string.format('wheel-%.0f', from + n - 1)) end
if redis.call('EXISTS', unpack(buckets)) == 0 then return {0, {}, {}, {}} end
local function isOfAnotherType(answer)
  return type(answer) == 'table' and string.sub(answer.err, 1, 9) == 'WRONGTYPE'
end
for n, bucket in ipairs(buckets) do
  local minute = string.format('%.0f', from + n - 1)
  local gone = wheelKey(wheel, 'gone-' .. minute)
  local length = redis.pcall('LLEN', bucket)
  if isOfAnotherType(length) then noLists[#noLists + 1] = bucket end
  if length ~= 0 and isOfAnotherType(redis.pcall('SCARD', gone)) then noSets[#noSets + 1] = gone end
  if type(length) == 'number' and length > 0 then
    local score = tonumber(redis.call('ZSCORE', wheel, minute) or 'inf')
    if score > promotionOf(from + n - 1) and (ARGV.restore ~= '1' or restoreBucket(wheel, from + n - 1)) then lacking = lacking + 1 end
    for _, key in ipairs({bucket, gone}) do
      local left = redis.pcall('PTTL', key)
      if type(left) == 'number' and left >= 0 then
        expiring[#expiring + 1] = key
        expiring[#expiring + 1] = left
      end
    end
  end
end
return {lacking, expiring, noLists, noSets}
