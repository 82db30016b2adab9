-- Examine the buckets of some minutes in a row, also of those that the wheel lacks, or to which another program gave a later time than that of their promotion.
--
-- KEYS[1] wheel  zset  minute of a bucket -> when the bucket is promoted, epoch ms
--
-- ARGV[1] from     integer  the first minute
-- ARGV[2] count    integer  how many minutes
-- ARGV[3] restore  flag     whether to put into the wheel what it lacks, with its time
--
-- returns {buckets that the wheel lacked or has too late, for each key of a bucket that expires two: the key, in how many ms}
local wheel, from, count = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])

-- include shared/wheel.lua

local reply, buckets = {0}, {}
for n = 1, count do buckets[n] = wheelKey(wheel, string.format('wheel-%.0f', from + n - 1)) end
if redis.call('EXISTS', unpack(buckets)) == 0 then return reply end
for n, bucket in ipairs(buckets) do
  local minute = string.format('%.0f', from + n - 1)
  local length = redis.pcall('LLEN', bucket)
  if type(length) == 'number' and length > 0 then
    local score = tonumber(redis.call('ZSCORE', wheel, minute) or 'inf')
    if score > promotionOf(from + n - 1) and (ARGV[3] ~= '1' or restoreBucket(wheel, from + n - 1)) then reply[1] = reply[1] + 1 end
    for _, key in ipairs({bucket, wheelKey(wheel, 'gone-' .. minute)}) do
      local left = redis.pcall('PTTL', key)
      if type(left) == 'number' and left >= 0 then
        reply[#reply + 1] = key
        reply[#reply + 1] = left
      end
    end
  end
end
return reply
